"""The settings that a run tried, as rows of a table: the numbers of the picture of throughput
against p99. From the run's document."""

from collections.abc import Mapping
from typing import Any

from autotune.quantities import show_latency

Document = Mapping[str, Any]
Row = tuple[str, ...]


def limited(run: Document) -> list[Document]:
    """The figures that have a ceiling, each a p99."""
    return [figure for figure in run["figures"] if figure["ceiling"]]


def heads(run: Document) -> Row:
    """Over the columns of `rows`."""
    names = [figure["name"] for figure in limited(run)]
    return ("trials", "overall", *names, *(["ceilings"] if names else []), "settings")


def rows(run: Document) -> list[Row]:
    """A row a setting, in the order of their first trials."""
    names = [figure["name"] for figure in limited(run)]
    found: list[tuple[int, Row]] = []
    for point in run["points"]:
        numbers, gain = ", ".join(map(str, point["trials"])), f"×{point['gain']['value']:.2f}"
        p99s = [_shown(run, point, name) for name in names]
        held = ["hold" if point["holds"] else "broken"] if names else []
        found.append((point["trials"][0], (numbers, gain, *p99s, *held, point["setting"])))
    pooled = {number for point in run["points"] for number in point["trials"]}
    for trial in run["trials"]:
        number = trial["number"]
        if number not in pooled:
            said = trial["setting"] + _unfinished(trial)
            empty = ["–"] * (1 + len(names)) + ([""] if names else [])
            found.append((number, (str(number), *empty, said)))
    return [row for _, row in sorted(found)]


def _shown(run: Document, point: Document, name: str) -> str:
    """A p99, or "=" where the setting changes nothing that could move it."""
    return "=" if _is_as_before(run, point, name) else show_latency(point["p99s"][name])


def _is_as_before(run: Document, point: Document, name: str) -> bool:
    same = point["p99s"][name] == run["points"][0]["p99s"][name]
    return bool(same) and not point["original"]


def _unfinished(trial: Document) -> str:
    if trial["status"] == "complete":
        return ""
    return f" ({trial['status']}{': ' if trial['reason'] else ''}{trial['reason']})"


def note(run: Document) -> str:
    """What the numbers of the table and of the picture are."""
    text = (
        "A row is a combination of settings, with all its trials together. Its figures are those "
        "that it would have beside the original settings' figures above: how the array itself "
        "changed from trial to trial is taken out. What a combination cannot have moved is "
        "known from all trials that share it, so its gain may differ from that of its only trial."
    )
    names = [figure["name"] for figure in limited(run)]
    if any(_is_as_before(run, point, name) for point in run["points"] for name in names):
        text += " =: what it changes cannot move that p99."
    return f"{text} `{run['history']}` lists what each trial measured."
