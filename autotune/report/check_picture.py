"""The picture of an array's checks: how long each took, what it found, how it disturbed."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from autotune.quantities import show_count, show_latency
from autotune.report.drawing import AFTER, FAINT, INK, LIMIT, Picture, figure, log_axis, picture
from autotune.report.guarded_picture import WIDE, ends, legend, scaled

Document = Mapping[str, Any]
DAY_S = 86_400
KINDS = {
    "no mismatch": ("o", AFTER, ""),
    "mismatches": ("X", LIMIT, ""),
    "not all was read": ("o", FAINT, "none"),
}
"""Marker, colour, and what it is filled with, if not with that."""


def days(stored: Sequence[str]) -> list[float]:
    """Moments as an axis of dates takes them."""
    return [datetime.fromisoformat(each).timestamp() / DAY_S for each in stored]


def date_axis(axes: Axes, shown: Sequence[float]) -> None:
    """An axis of such days, as wide as what is drawn."""
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(
        lambda day, _: datetime.fromtimestamp(day * DAY_S, UTC).strftime("%Y-%m-%d")
    )
    room = max(3.0, (max(shown) - min(shown)) / 30)
    axes.set_xlim(min(shown) - room, max(shown) + room)


def _kind(check: Document) -> str:
    if check["mismatch_sectors"]:
        return "mismatches"
    return "no mismatch" if check["complete"] else "not all was read"


def checks(name: str, shown: Sequence[Document]) -> Picture:
    """`shown` are documents of checks, in any order."""
    when = days([each["began"] for each in shown])
    known = [(x, c["p99"]) for x, c in zip(when, shown, strict=True) if c["p99"]["middle_ns"]]
    drawing, panels = figure(3.6, 1.0, 1.0) if known else figure(2.4)
    took, title = panels[0], "How long each took"
    by, unit = scaled(max(each["seconds"] for each in shown))
    for label, (marker, colour, filling) in KINDS.items():
        found = [
            (x, c["seconds"] / by) for x, c in zip(when, shown, strict=True) if _kind(c) == label
        ]
        if found:
            x, y = zip(*found, strict=True)
            fill = filling or colour
            took.plot(x, y, marker, color=colour, markerfacecolor=fill, label=label, markersize=6)
    took.set_ylabel(f"{unit} of reading")
    took.set_ylim(0, 1.15 * max(each["seconds"] for each in shown) / by or 1.0)
    if known:
        _felt(panels[-1], known)
        title += ", and the p99 meanwhile"
    date_axis(panels[-1], when)
    legend(drawing, panels)
    return picture(name, drawing, title, _said(shown))


def _felt(axes: Axes, known: Sequence[tuple[float, Document]]) -> None:
    axes.set_ylabel("p99 meanwhile")
    axes.yaxis.set_major_formatter(lambda value, _: show_latency(value) if value else "0")
    for number, (x, each) in enumerate(known):
        label = None if number else "p99, median to highest"
        axes.plot([x, x], [each["middle_ns"], each["worst_ns"]], color=INK, linewidth=1)
        axes.plot([x], [each["middle_ns"]], "o", color=INK, markersize=5, label=label)
    held = [(x, each["ceiling_ns"]) for x, each in known if each["ceiling_ns"]]
    if held:
        at, ceilings = zip(*held, strict=True)
        axes.plot(at, ceilings, "_", color=LIMIT, markersize=12, markeredgewidth=2, label="ceiling")
    names = ("middle_ns", "worst_ns", "ceiling_ns")
    drawn = [each[name] for _, each in known for name in names if each[name]]
    if max(drawn) > WIDE * min(drawn):
        axes.set_ylim(0.7 * min(drawn), 1.3 * max(drawn))
        log_axis(axes, "y", show_latency)
    else:
        axes.set_ylim(0, 1.15 * max(drawn))


def _said(shown: Sequence[Document]) -> str:
    whole = [each for each in shown if each["complete"]]
    bad = [each for each in shown if each["mismatch_sectors"]]
    found = f"{len(bad)} with mismatches" if bad else "none with mismatches"
    said = f"{show_count(len(shown), 'check')}, {len(whole)} of them complete, {found}"
    worst = [ns for each in shown if (ns := each["p99"]["worst_ns"])]
    if not worst:
        return f"{said}."
    return f"{said}; the highest p99 of each was {ends(worst, show_latency)}."
