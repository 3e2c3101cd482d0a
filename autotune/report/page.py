"""A report as one HTML file: no script, nothing from the network."""

import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from autotune.report import (
    array_rows,
    array_words,
    design_words,
    run_rows,
    sentences,
    several_runs,
    tried_table,
)
from autotune.report.advice import advised
from autotune.report.array_pictures import array_pictures
from autotune.report.design_pictures import design_pictures
from autotune.report.drawing import Picture
from autotune.report.pictures import pictures

MOST_WHOLE = 3
"""Of more runs the page shows how they compare, and leaves the rest to the page of each: four whole
ones would be more than 300 KiB."""


def html(documents: list[dict[str, Any]]) -> str:
    """The page of the documents of these runs, arrays and designs; the same bytes for the same
    documents."""
    environment = Environment(
        loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text("utf-8")),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"marked": _marked, "command": _command, "unparted": _unparted}
    runs = [each for each in documents if each["kind"] == "run"]
    arrays = {f"a{n}": each for n, each in enumerate(documents) if each["kind"] == "array"}
    brief = len(runs) > MOST_WHOLE
    drawn = {run["run"]: _in_the_page(pictures(run, brief=brief)) for run in runs}
    drawn |= {key: _in_the_page(array_pictures(key, each)) for key, each in arrays.items()}
    designs = {f"d{n}": each for n, each in enumerate(documents) if each["kind"] == "design"}
    drawn |= {key: _in_the_page(design_pictures(key, each)) for key, each in designs.items()}
    page = environment.get_template("page.html").render(
        runs=runs,
        brief=brief,
        arrays=arrays,
        found_designs=designs,
        others=[*arrays.values(), *designs.values()],
        drawn=drawn,
        said=sentences,
        run_rows=run_rows,
        tried=tried_table,
        several=several_runs,
        words=array_words,
        designs=design_words,
        advised=advised,
        tables=array_rows,
        how=array_words.how(list(arrays.values())),
    )
    return _styles_said_once(page)


def _styles_said_once(page: str) -> str:
    """The page with a class for each style of its pictures: said each time, they are a third of it.
    No other element of the template has a style of its own."""
    classes: dict[str, str] = {}
    page = re.sub(
        r'(<[^<>]*) style="([^"<>]*)"',
        lambda m: f'{m[1]} class="{classes.setdefault(m[2], f"s{len(classes)}")}"',
        page,
    )
    rules = "".join(f".{name} {{ {style} }}\n" for style, name in classes.items())
    return page.replace("</style>", f"{rules}</style>", 1)


def _marked(text: str) -> Markup:
    """A sentence with its commands, between backticks, as code."""
    parts = text.split("`")
    # A backtick without another one is one.
    if len(parts) % 2 == 0:
        return escape(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(
        code.format(_command(part)) if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def _command(text: str) -> Markup:
    """A command in words that are not parted where there is room: after the first `-` of an option
    a browser would begin a new line."""
    return _unparted(text, "-")


def _unparted(text: str, dash: str = "–") -> Markup:
    """A text whose words are not parted at that dash; by default, its ranges."""
    word = Markup('<span class="word">{}</span>')
    return Markup("").join(
        word.format(part) if dash in part else escape(part) for part in re.split(r"(\s+)", text)
    )


def _in_the_page(drawn: dict[str, Picture]) -> dict[str, tuple[Picture, Markup]]:
    # What matplotlib writes is escaped already.
    return {name: (each, Markup(each.svg)) for name, each in drawn.items()}
