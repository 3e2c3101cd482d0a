"""What a design says in words and tables, from its document."""

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.quantities import (
    show_bytes,
    show_count,
    show_figure,
    show_rate,
    show_seconds,
)
from autotune.report.tables import QUIET_QUANTITIES, show_span
from autotune.stats.sequential import Held

Document = Mapping[str, Any]
FINALIST_HEADS = ("", "shape", "capacity", "may fail", "overall (95 %)")
TRIAL_HEADS = ("trial", "shape", "throughput", "what came of it")
OVER = ", over"
"""After a p99 that is above its ceiling."""
HOW = (
    "Small arrays were made on a slice of each disk, one after the other. fio measured the phases "
    "of the workload on each; then they were removed.",
    "The finalists were measured in turn with what mdadm makes by itself. Only a difference beyond "
    "noise counts. An interval contains the true value 95 times of 100.",
    "A slice shows neither the way from one end of a hard disk to the other, nor what a bitmap "
    "costs writes that are scattered over the whole array.",
)


def where(design: Document) -> str:
    """On what it was measured, and with what."""
    disks = design["disks"]
    kinds = {f"{show_bytes(disk['bytes'])} ({disk['media']})" for disk in disks}
    names = ", ".join(disk["device"] for disk in disks)
    host = design.get("host", "")
    place = "In the lab, on simulated disks. " if in_lab(design) else f"On {host}. " if host else ""
    return (
        f"{place}{show_count(len(disks), 'disk')} of {' and '.join(sorted(kinds))}: {names}. "
        f"Workload {design['workload']}."
    )


def winner(design: Document) -> Document:
    """The finalist that is the answer."""
    found: Document = next(
        each for each in design["finalists"] if each["setting"] == design["winner"]
    )
    return found


def answer(design: Document) -> tuple[str, str]:
    """What to take, and why."""
    best = winner(design)
    others = {
        t["shape"]
        for t in design["trials"]
        if t["setting"] != design["default"] and t["status"] == "complete"
    }
    measured = f"other shapes measured: {len(others)}"
    why = f"nothing was proven better than mdadm's default ({measured})"
    if design["proven"]:
        why = f"{best['reason']}, overall {overall(best)}"
    return f"Take {best['letter']}, {best['shape']}", f": {why}."


def reasons(design: Document) -> list[str]:
    """Why not the others, and what else to weigh."""
    said = [
        f"Not {each['letter']}: {each['reason']}."
        for each in design["finalists"]
        if each["gain"] and not each["kept"]
    ]
    if not design["proven"]:
        said.append(
            "With more time (--time), more shapes can be measured and smaller differences proven."
        )
    levels = [each["setting"]["level"] for each in design["finalists"]]
    other = next((level for level in levels if level != design["winner"]["level"]), None)
    if other is not None:
        said.append(
            "Capacity and the disks that may fail are for you to weigh. To have another level, "
            f"run it again with --level, such as --level {other}."
        )
    return said


def costs(design: Document) -> list[str]:
    """Why the search ended, and what it took."""
    return [
        f"The search ended: {design['stopped']}.",
        f"{show_count(len(design['trials']), 'trial')} in {show_seconds(design['seconds'])}, on "
        f"{show_bytes(design['slice_bytes'])} of each disk; {show_bytes(design['bytes_written'])} "
        "written. All small arrays are removed.",
    ]


def rebuild(design: Document) -> str:
    """What is known of a rebuild."""
    later = f"`autotune forecast {design['device']}` tells more once the array is made."
    if winner(design)["rebuild_seconds"] is None:
        return f"How long a rebuild takes was not measured; {later}"
    return (
        f"A rebuild of a disk is estimated from the speed of the check, for the whole disk; {later}"
    )


def finalist_rows(design: Document) -> list[list[str]]:
    """Under FINALIST_HEADS."""
    return [
        [
            each["letter"],
            each["shape"],
            show_bytes(each["capacity_bytes"]),
            show_count(each["survives"], "disk"),
            overall(each) or "mdadm's default",
        ]
        for each in design["finalists"]
    ]


def overall(finalist: Document) -> str:
    """Its gain with the interval; "" for mdadm's default, which it is held against."""
    gain = finalist["gain"]
    return f"×{gain['ratio']:.2f} ({show_span(gain['low'], gain['high'], '–')})" if gain else ""


def figures(design: Document) -> list[Document]:
    """Those that are shown."""
    return [each for each in design["figures"] if not each["name"].endswith(QUIET_QUANTITIES)]


def figure_heads(design: Document) -> list[str]:
    """A column for each finalist."""
    return ["", *(each["letter"] for each in design["finalists"])]


def figure_rows(design: Document) -> list[list[str]]:
    """Under `figure_heads`; a rebuild is the last row, if it is known."""
    finalists = design["finalists"]
    rows = [
        [figure["name"], *(_cell(figure, each) for each in finalists)] for figure in figures(design)
    ]
    times = [each["rebuild_seconds"] for each in finalists]
    if any(times):
        rows.append(["a rebuild", *("–" if t is None else show_seconds(t) for t in times)])
    return rows


def _cell(figure: Document, finalist: Document) -> str:
    shown = finalist["figures"].get(figure["name"])
    if shown is None:
        return "–"
    over = OVER if finalist["ceilings"].get(figure["name"]) == Held.BROKEN.value else ""
    value, low, high = (
        show_figure(figure["kind"], shown[name]) for name in ("value", "low", "high")
    )
    unit = value.rpartition(" ")[2]
    if all(text.endswith(f" {unit}") for text in (low, high)):
        low, high = (text.removesuffix(f" {unit}") for text in (low, high))
    return f"{value} ({low} to {high}){over}"


def trial_rows(design: Document) -> list[list[str]]:
    """Under TRIAL_HEADS: every small array in the order in which it was measured."""
    rates = [each["name"] for each in figures(design) if each["kind"] == "throughput"]
    rows = []
    for number, trial in enumerate(design["trials"], 1):
        shown = [(n, trial["figures"][n]["value"]) for n in rates if n in trial["figures"]]
        told = ", ".join(f"{name.partition('.')[0]} {show_rate(rate)}" for name, rate in shown)
        became = trial["reason"] or ("measured" if shown else trial["status"])
        rows.append([str(number), trial["shape"], told, became])
    return rows


def in_lab(design: Document) -> bool:
    return bool(design.get("lab"))


def commands_elsewhere(design: Document) -> list[tuple[str, Sequence[str]]]:
    """The commands for a page, which may be read on another machine: of a design in the lab none,
    since its disks have the names of others there."""
    if in_lab(design):
        return [("None: on another machine, disks of these names are others.", [])]
    return commands(design)


def commands(design: Document) -> list[tuple[str, Sequence[str]]]:
    """The commands that make it, under a title each."""
    commands = design["commands"]
    return [
        ("Make it:", [commands["mdadm"]]),
        ("With ext4, and its line in /etc/fstab:", [commands["ext4"], commands["ext4_fstab"]]),
        ("Or with XFS:", [commands["xfs"], commands["xfs_fstab"]]),
    ]


def machine(design: Document) -> list[tuple[str, str]]:
    """What it was measured with, as pairs."""
    ended = design["ended"].replace("T", " ").replace("+00:00", " UTC")
    known = design["environment"].items()
    return [("ended", ended), ("command", design["command"]), *known]
