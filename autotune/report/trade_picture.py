"""The picture of throughput against p99, with the answers named in it: a panel for each p99 that
has a ceiling."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.text import Annotation

from autotune.quantities import show_latency
from autotune.report.drawing import (
    AFTER,
    BEFORE,
    FAINT,
    LIMIT,
    Picture,
    figure,
    log_axis,
    picture,
    ratio,
)
from autotune.report.named_dots import Dots, name_dots
from autotune.report.tried_table import limited

Document = Mapping[str, Any]
ALONE_IN, EACH_IN = 3.7, 2.6
"""Heights of a panel that is alone, and of each of several."""
NAME, LOW, EDGE = 0.35, 0.2, 0.03
"""How wide the name of a ceiling may be and how high, of a panel's width and height; how wide a dot
is."""


def trade(name: str, run: Document) -> Picture | None:
    """Every setting of a run; nothing if it had but one, or no p99 has a ceiling."""
    points, figures = run["points"], _moving(run)
    if len(points) < 2 or not figures:
        return None
    height = ALONE_IN if len(figures) == 1 else EACH_IN * len(figures)
    drawing, panels = figure(height, *[1.0] * len(figures), same_x=False)
    both = zip(panels, figures, strict=True)
    drawn = [(axes, *_panel(axes, points, limit)) for axes, limit in both]
    names = [
        " = ".join([*(["original"] if point["original"] else []), *point["answers"]])
        for point in points
    ]
    # When all panels have their room, or names would be moved by what is drawn later.
    for axes, dots, line, wall in drawn:
        name_dots(drawing, axes, dots, names, [line], [wall])
    title = "Throughput against p99 of every combination"
    return picture(name, drawing, title, _said(points, figures))


def _moving(run: Document) -> list[Document]:
    """Those p99s that a setting moved: of others, all dots would be above each other."""
    figures = limited(run)
    found = [f for f in figures if len({p["p99s"][f["name"]] for p in run["points"]}) > 1]
    return found or figures[:1]


def _said(points: Sequence[Document], figures: Sequence[Document]) -> str:
    said = [f"{f['name']} may be {show_latency(f['ceiling'])}" for f in figures]
    for point in points:
        name = " and ".join(point["answers"]) or f"trial {point['trials'][0]}"
        p99s = (f"{f['name']} {show_latency(point['p99s'][f['name']])}" for f in figures)
        said.append(f"{name}: throughput ×{point['gain']['value']:.2f}, {', '.join(p99s)}")
    return f"{'; '.join(said)}."


def _panel(
    axes: Axes, points: Sequence[Document], limit: Document
) -> tuple[Dots, Dots, Annotation]:
    """Draw one p99: where the dots are, the corners of the line above them, and the ceiling's
    name."""
    # First of all, or margins would reach below zero.
    axes.set_xscale("log")
    axes.set_yscale("log")
    dots = [(point["p99s"][limit["name"]], point["gain"]["value"]) for point in points]
    for point, (x, y) in zip(points, dots, strict=True):
        colour = BEFORE if point["original"] else AFTER if point["holds"] else FAINT
        marker = "D" if point["original"] else "o"
        filled = colour if point["holds"] else "none"
        axes.plot([x], [y], marker, color=colour, markerfacecolor=filled, markersize=7, zorder=3)
    at = limit["ceiling"]
    axes.axvline(at, color=LIMIT, linestyle="--", linewidth=1.5)
    axes.plot([at], [dots[0][1]], alpha=0)
    axes.margins(0.14)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.9 * limit["before"]), max(high, 1.1 * limit["before"]))
    log_axis(axes, "x", show_latency)
    log_axis(axes, "y", ratio)
    steps = front(dots, axes.get_xlim()[1])
    axes.plot(
        *zip(*steps, strict=True), color=FAINT, linewidth=1.0, zorder=1, scalex=False, scaley=False
    )
    axes.set_xlabel(f"{limit['name']} (less is better)")
    axes.set_ylabel("throughput, ratio")
    return dots, steps, _ceiling(axes, at, dots)


def _ceiling(axes: Axes, at: float, dots: Dots) -> Annotation:
    """Name a ceiling beside its line: below, or above where a dot is near that place."""
    (low, high), (least, most) = axes.get_xlim(), axes.get_ylim()

    def share(value: float, start: float, end: float) -> float:
        return math.log(value / start) / math.log(end / start)

    place = share(at, low, high)
    side = "right" if place > 0.5 else "left"
    start, end = (place - NAME, place + EDGE) if side == "right" else (place - EDGE, place + NAME)
    heights = [share(y, least, most) for x, y in dots if start < share(x, low, high) < end]
    below = min(heights, default=1.0) > LOW
    return axes.annotate(
        f"ceiling {show_latency(at)}", (at, 0.0 if below else 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if side == "right" else 4, 5 if below else -5), textcoords="offset points",
        ha=side, va="bottom" if below else "top", color=LIMIT,
    )  # fmt: skip


def front(dots: Dots, end: float) -> list[tuple[float, float]]:
    """The most throughput for each p99, as the corners of a line that goes on to `end`: more p99
    alone brings nothing."""
    steps: list[tuple[float, float]] = []
    for x, y in sorted(dots, key=lambda dot: (dot[0], -dot[1])):
        if not steps:
            steps.append((x, y))
        elif y > steps[-1][1]:
            steps += [(x, steps[-1][1]), (x, y)]
    return [*steps, (end, steps[-1][1])]
