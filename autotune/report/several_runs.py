"""Runs beside each other, from their documents."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from autotune.quantities import show_latency, show_ram, show_seconds
from autotune.report.run_rows import change, show

Document = Mapping[str, Any]
Row = tuple[str, ...]
SIDE_BY_SIDE = "Side by side"
NONE = "–"
NOTE = (
    "Figures and settings: original → new; of a figure also its change, with the 95 % interval. "
    "Each run was compared with the original settings of its own day."
)


def side_by_side(runs: Sequence[Document]) -> list[Row]:
    """A column a run: the head first, then what came of each, the figures, the settings, and what
    it cost."""

    def row(name: str, cell: Callable[[Document], str]) -> Row:
        return (name, *(cell(run) or NONE for run in runs))

    figures = dict.fromkeys(f["name"] for run in runs for f in run["figures"] if not f["quiet"])
    settings = dict.fromkeys(each["knob"] for run in runs for each in run["changes"])
    return [
        ("", *(f"run {run['run']} on {run['device']}" for run in runs)),
        row("day", lambda run: str(run["started"])[:10]),
        row("host", lambda run: "the lab" if run["lab"] else str(run["host"] or "")),
        row("array", _array),
        row("workload", lambda run: str(run["workload"]["name"])),
        row("ceilings", _ceilings),
        row("compared with the original", lambda run: str(run["compared"]["setting"])),
        row("kept", _kept),
        row("overall", lambda run: change(run["gain"]) if run["gain"] else ""),
        *(row(name, partial(_before_and_after, name)) for name in figures),
        *(row(knob, partial(_setting, knob)) for knob in settings),
        row("RAM", _ram),
        row("the run took", lambda run: show_seconds(run["seconds"])),
    ]


def note(runs: Sequence[Document]) -> str:
    """What the cells hold, and what the columns do not tell."""
    if len({repr(run["workload"]) for run in runs}) == 1:
        return NOTE
    return (
        f"{NOTE} The workloads are not the same, so a figure of one run is another load than the "
        "figure of that name beside it: compare the ratios, not the values."
    )


def _array(run: Document) -> str:
    array = run["array"]
    chunk = f", chunk {array['chunk_kib']} KiB" if array["chunk_kib"] else ""
    return f"{array['level']} of {array['members']} on {array['media']}{chunk}"


def _kept(run: Document) -> str:
    if run["state"] != "done":
        return str(run["state"])
    return "yes" if run["adopt"] else "no"


def _ceilings(run: Document) -> str:
    return ", ".join(
        f"{each['name']} {show_latency(each['ceiling'])}"
        + " (autotune's own)" * bool(each["ratio"])
        for each in run["figures"]
        if each["ceiling"]
    )


def _before_and_after(name: str, run: Document) -> str:
    figure = next((each for each in run["figures"] if each["name"] == name), None)
    if figure is None:
        return ""
    before, shown = show(figure, figure["before"]), figure["change"]
    if not shown:
        return before
    return f"{before} → {show(figure, figure['after'])}, {change(shown)}"


def _setting(knob: str, run: Document) -> str:
    """What a run changes of a setting; nothing of one that it leaves."""
    found = (each for each in run["changes"] if each["knob"] == knob)
    return next((f"{e['before']} → {e['after']} {e['unit']}".strip() for e in found), "")


def _ram(run: Document) -> str:
    known = run["changes"] and run["ram_bytes"] is not None
    return show_ram(run["ram_bytes"], run["original_ram_bytes"]) if known else ""
