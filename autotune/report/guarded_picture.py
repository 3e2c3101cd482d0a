"""The picture of a guarded sync: its p99 against the ceiling, its pace, and the end as it was
expected at each moment."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from autotune.quantities import show_ends, show_latency, show_rate
from autotune.report.array_rows import moment
from autotune.report.drawing import (
    AFTER,
    BEFORE,
    FAINT,
    GOOD,
    INK,
    LIMIT,
    Picture,
    figure,
    log_axis,
    picture,
)

Document = Mapping[str, Any]
UNITS = ((172_800.0, 86_400.0, "days"), (7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"))
WIDE = 6.0
"""From this ratio of the highest to the lowest on, an axis of latencies is a log one."""
SHADE = 0.25
FEW = 9
"""Fewer points than these are dots, too: of a single one there is no line."""


def scaled(seconds: float) -> tuple[float, str]:
    """What to divide by, and the unit, for a time of this length."""
    return next(((by, name) for least, by, name in UNITS if seconds >= least), (1.0, "seconds"))


def ends(values: Sequence[float], show: Callable[[float], str]) -> str:
    """`40.0 ms to 85.0 ms`, or one of them if they are the same."""
    return show_ends(show(min(values)), show(max(values)))


def _gaps(values: Sequence[float | None], by: float = 1.0) -> list[float]:
    return [math.nan if value is None else value / by for value in values]


def guarded_sync(name: str, sync: Document) -> Picture:
    points, ceiling = sync["points"], sync["ceiling_ns"]
    by, unit = scaled(sync["seconds"])
    time = [seconds / by for seconds in points["seconds"]]
    foreseen = any(left is not None for left in points["left_s"])
    drawing, panels = figure(4.0 + 1.3 * foreseen, 1.2, 1.0, *([0.9] if foreseen else []))
    said = _p99(panels[0], time, sync)
    _line(panels[1], time, points["sync_bytes_per_s"], "sync", color=AFTER)
    _line(panels[1], time, _gaps(points["held_bytes_per_s"]), "limit", color=FAINT, linestyle="--")
    # A limit that nobody reaches would press the rest together.
    panels[1].set_ylim(0, 1.3 * max(*points["sync_bytes_per_s"], 1.0))
    panels[1].yaxis.set_major_formatter(lambda value, _: show_rate(value) if value else "0")
    panels[1].set_ylabel("each member")
    said.append(f"the sync went at {ends(points['sync_bytes_per_s'], show_rate)} of each member")
    if foreseen:
        _end(panels[2], time, sync, by, unit)
    panels[-1].set_xlabel(f"{unit} since the guard began")
    # As long as the table says that it took, which a last point may not reach.
    panels[-1].set_xlim(0, 1.02 * max(sync["seconds"] / by, *time) or 1.0)
    legend(drawing, panels)
    title = f"{sync['action'].capitalize()} of {moment(sync['began'])} under guard"
    limit = f"ceiling {show_latency(ceiling)}; " if ceiling else ""
    return picture(name, drawing, title, f"{limit}{'; '.join(said)}.")


def _line(
    axes: Axes, time: Sequence[float], values: Sequence[float], label: str, **style: str
) -> None:
    """A line and its name, if there is anything of it."""
    known = sum(not math.isnan(value) for value in values)
    if not known:
        return
    (line,) = axes.plot(time, values, label=label, **style)  # type: ignore[arg-type]
    if known < FEW:
        # The first one is on the axis.
        line.set(marker="o", markersize=4, clip_on=False)


def legend(drawing: Figure, panels: Sequence[Axes]) -> None:
    """One for all panels, above them."""
    found = [axes.get_legend_handles_labels() for axes in panels]
    handles = [handle for each, _ in found for handle in each]
    labels = [label for _, each in found for label in each]
    drawing.legend(handles, labels, loc="outside upper left", ncols=3)


def _p99(axes: Axes, time: list[float], sync: Document) -> list[str]:
    points, ceiling = sync["points"], sync["ceiling_ns"]
    p99, worst = _gaps(points["p99_ns"]), _gaps(points["worst_p99_ns"])
    known = [ns for ns in (*p99, *worst) if not math.isnan(ns)]
    _line(axes, time, p99, "p99", color=INK)
    axes.fill_between(time, p99, worst, color=INK, alpha=SHADE, linewidth=0)
    if ceiling:
        axes.axhline(ceiling, color=LIMIT, linestyle="--", label="ceiling")
    axes.set_ylabel("p99")
    axes.set_ylim(0, 1.15 * max((*known, ceiling or 0.0), default=1.0) or 1.0)
    axes.yaxis.set_major_formatter(lambda value, _: show_latency(value) if value else "0")
    if known and max(known) > WIDE * (ceiling or min(known)):
        axes.set_ylim(0.7 * min(known), 1.3 * max(known))
        log_axis(axes, "y", show_latency)
    if not known:
        said = "users sent hardly any requests"
        axes.text(0.5, 0.4, said, transform=axes.transAxes, ha="center")
        if not ceiling:
            # No latency is shown.
            axes.set_yticks([])
        return [said]
    return [f"the p99 was {ends(known, show_latency)}"]


def _end(axes: Axes, time: list[float], sync: Document, by: float, unit: str) -> None:
    """When it was expected to be over, as the guard said at each moment."""
    points = sync["points"]
    likely, low, high = (
        [
            (passed + left) / by if left is not None else math.nan
            for passed, left in zip(points["seconds"], points[key], strict=True)
        ]
        for key in ("left_s", "left_low_s", "left_high_s")
    )
    _line(axes, time, likely, "expected end", color=BEFORE)
    axes.fill_between(time, low, high, color=BEFORE, alpha=SHADE, linewidth=0)
    summary = sync["summary"]
    if summary is not None and not summary["released"] and points["share"][-1] > 0.99:
        axes.axhline(sync["seconds"] / by, color=GOOD, linewidth=1, label="real end")
    if sync["finish_s"] is not None:
        deadline = (sync["finish_s"] - sync["began_s"]) / by
        axes.axhline(deadline, color=LIMIT, linestyle=":", label="deadline")
    axes.set_ylabel(f"end, {unit}")
    axes.yaxis.set_major_locator(MaxNLocator(4))
