"""The numbers that a page says, and those that its JSON has."""

import html.parser
import itertools
import re
from collections.abc import Iterator
from typing import Any

from autotune.quantities import show_bytes, show_latency, show_rate, show_seconds
from autotune.report.tables import show_span


class Reader(html.parser.HTMLParser):
    """The text of a page, and its elements; without the labels of axes, which are no figures."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "path", "use", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"style", "text"} & set(self.open):
            self.texts.append(data)


def leaves(document: Any) -> Iterator[Any]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from leaves(value)
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value)
    else:
        yield document


def numbers_in(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", text)


def sayable(document: Any) -> set[str]:
    """Every number that is a figure of the document, as any sentence may put it."""
    found: set[str] = set()
    for leaf in leaves(document):
        if isinstance(leaf, str):
            found.update(numbers_in(leaf))
        elif isinstance(leaf, int | float) and leaf is not None:
            value = abs(float(leaf))
            shown = [show_bytes(value), show_rate(value), show_latency(value), show_seconds(value)]
            shown += [f"{value / unit:.{n}f}" for unit in (60, 3600, 86_400) for n in (0, 1)]
            shown += [f"{value:.2f}", f"{value:g}", f"{value:.0f}", show_span(value, value)]
            found.update(itertools.chain.from_iterable(map(numbers_in, shown)))
    for run in (each for each in document if each["kind"] == "run"):
        found.update(str(len(run["trials"])))
        found.update(numbers_in(f"{len(run['trials'])} {run['started']} {run['ended']}"))
    return found
