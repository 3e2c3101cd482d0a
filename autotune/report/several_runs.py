"""Runs beside each other, from their documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.report.sentences import change, show

Document = Mapping[str, Any]
SIDE_BY_SIDE = "Side by side"


def side_by_side(runs: Sequence[Document]) -> list[tuple[str, ...]]:
    """A column a run: the head first, then what came of each, then the figures."""
    names = dict.fromkeys(f["name"] for run in runs for f in run["figures"] if not f["quiet"])
    rows: list[tuple[str, ...]] = [
        ("", *(f"run {run['run']} on {run['device']}" for run in runs)),
        ("workload", *(run["workload"]["name"] for run in runs)),
        ("overall", *(change(run["gain"]) if run["gain"] else "–" for run in runs)),
        ("kept", *("yes" if run["adopt"] else "no" for run in runs)),
    ]
    return rows + [(name, *(_before_and_after(run, name) for run in runs)) for name in names]


def _before_and_after(run: Document, name: str) -> str:
    for figure in run["figures"]:
        if figure["name"] == name:
            original, after = show(figure, figure["before"]), figure["after"]
            return original if after is None else f"{original} → {show(figure, after)}"
    return "–"
