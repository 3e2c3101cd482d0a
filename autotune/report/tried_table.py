"""The settings that a run tried, as rows of a table: the numbers of the picture of throughput
against p99. From the run's document."""

from collections.abc import Mapping
from typing import Any

from autotune.quantities import show_latency

Document = Mapping[str, Any]
Row = tuple[str, ...]


def only_p99(run: Document) -> Document | None:
    """The figure whose p99 has a ceiling, if it is but one. Of several, a setting has the mean of
    their ratios to the original settings'."""
    limited = [figure for figure in run["figures"] if figure["ceiling"]]
    return limited[0] if len(limited) == 1 else None


def p99_of(run: Document, point: Document) -> float:
    """Where a setting stands on the axis of the picture: ns of the only p99, or a mean ratio."""
    only = only_p99(run)
    value: float = point["p99s"][only["name"]] if only else point["p99"]["value"]
    return value


def show_p99(run: Document, value: float) -> str:
    return show_latency(value) if only_p99(run) else f"×{value:.2f}"


def heads(run: Document) -> Row:
    """Over the columns of `rows`."""
    only = only_p99(run)
    return ("trials", "overall", only["name"] if only else "p99, mean", "ceilings", "setting")


def rows(run: Document) -> list[Row]:
    """A row a setting, in the order of their first trials."""
    found: list[tuple[int, Row]] = []
    for point in run["points"]:
        p99 = show_p99(run, p99_of(run, point)) if point["p99"] else "–"
        if _is_as_before(run, point):
            p99 = "="
        held = ("hold" if point["holds"] else "broken") if point["p99"] else ""
        numbers, gain = ", ".join(map(str, point["trials"])), f"×{point['gain']['value']:.2f}"
        found.append((point["trials"][0], (numbers, gain, p99, held, point["setting"])))
    pooled = {number for point in run["points"] for number in point["trials"]}
    for trial in run["trials"]:
        number = trial["number"]
        if number not in pooled:
            said = trial["setting"] + _unfinished(trial)
            found.append((number, (str(number), "–", "–", "", said)))
    return [row for _, row in sorted(found)]


def _is_as_before(run: Document, point: Document) -> bool:
    """Whether a setting changes nothing that could move the only p99, so that it was not measured
    again."""
    only = only_p99(run)
    if not only or point["original"]:
        return False
    name = only["name"]
    return bool(point["p99s"][name] == run["points"][0]["p99s"][name])


def _unfinished(trial: Document) -> str:
    if trial["status"] == "complete":
        return ""
    return f" ({trial['status']}{': ' if trial['reason'] else ''}{trial['reason']})"


def note(run: Document) -> str:
    """What the numbers of the table and of the picture are."""
    text = (
        "A row is a setting, with all its trials together. Its figures are those that it would "
        "have beside the original settings' figures above: how the array itself changed from trial "
        "to trial is taken out."
    )
    if not only_p99(run) and any(point["p99"] for point in run["points"]):
        names = ", ".join(figure["name"] for figure in run["figures"] if figure["ceiling"])
        text += (
            f" The p99 is the mean (geometric) of {names}, each relative to the original settings'."
        )
    if any(_is_as_before(run, point) for point in run["points"]):
        text += " =: what it changes cannot move that p99."
    return f"{text} `{run['history']}` lists what each trial measured."
