"""The picture of throughput against p99, with the answers named in it."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from autotune.quantities import show_latency
from autotune.report.drawing import (
    AFTER,
    BEFORE,
    FAINT,
    INK,
    LIMIT,
    Picture,
    figure,
    log_axis,
    picture,
    ratio,
)
from autotune.report.tried_table import only_p99, p99_of, show_p99

Document = Mapping[str, Any]


def trade(name: str, run: Document) -> Picture | None:
    """Every setting of a run; nothing if it had but one, or no p99."""
    points = [point for point in run["points"] if point["p99"]]
    if len(points) < 2:
        return None
    drawing, (axes,) = figure(3.7)
    # First of all, or margins would reach below zero.
    axes.set_xscale("log")
    axes.set_yscale("log")
    for point in points:
        x, y = p99_of(run, point), point["gain"]["value"]
        colour = BEFORE if point["original"] else AFTER if point["holds"] else FAINT
        marker = "D" if point["original"] else "o"
        filled = colour if point["holds"] else "none"
        axes.plot([x], [y], marker, color=colour, markerfacecolor=filled, markersize=7, zorder=3)
        if point["front"]:
            axes.plot([x], [y], "o", color=colour, markerfacecolor="none", markersize=12, zorder=3)
    axes.margins(0.14)
    only = only_p99(run)
    if only:
        at = only["ceiling"]
        axes.axvline(at, color=LIMIT, linestyle="--", linewidth=1.5)
        axes.plot([at], [points[0]["gain"]["value"]], alpha=0)
    home, (low, high) = only["before"] if only else 1.0, axes.get_xlim()
    axes.set_xlim(min(low, 0.9 * home), max(high, 1.1 * home))
    log_axis(axes, "x", show_latency if only else ratio)
    log_axis(axes, "y", ratio)
    walls = []
    if only:
        side = "right" if at > (axes.get_xlim()[0] * axes.get_xlim()[1]) ** 0.5 else "left"
        walls = [
            axes.annotate(
                f"ceiling {show_latency(at)}", (at, 0.0),
                xycoords=("data", "axes fraction"), xytext=(-4 if side == "right" else 4, 5),
                textcoords="offset points", ha=side, color=LIMIT,
            )
        ]  # fmt: skip
    name_of_p99 = only["name"] if only else "mean of the p99s, ratio to the original"
    axes.set_xlabel(f"{name_of_p99} (less is better)")
    axes.set_ylabel("throughput, ratio to the original")
    spots = [(p99_of(run, point), point["gain"]["value"]) for point in points]
    _name_answers(drawing, axes, points, spots, walls)
    named = "; ".join(
        f"{' and '.join(p['answers']) or 'trial ' + str(p['trials'][0])}: "
        f"throughput ×{p['gain']['value']:.2f}, p99 {show_p99(run, p99_of(run, p))}"
        for p in points
    )
    return picture(name, drawing, "Throughput against p99 of every setting", f"{named}.")


Spots = list[tuple[float, float]]


def _name_answers(
    drawing: Figure, axes: Axes, points: list[Document], dots: Spots, walls: list[Annotation]
) -> None:
    """Name the answers beside their points (`dots`: where these are), no name on another one, on a
    point, or on a ceiling's line and name (`walls`)."""
    drawing.draw_without_rendering()
    to_pt = 72 / drawing.dpi
    whole = axes.get_window_extent()
    room = (whole.x0 * to_pt, whole.x1 * to_pt, whole.y0 * to_pt, whole.y1 * to_pt)
    spots = [axes.transData.transform(dot) * to_pt for dot in dots]
    taken = [(x - DOT_PT, x + DOT_PT, y - DOT_PT, y + DOT_PT) for x, y in spots]
    for wall in walls:
        x = axes.transData.transform((wall.xy[0], 1.0))[0] * to_pt
        name = wall.get_window_extent()
        taken.append((x - 1, x + 1, room[2], room[3]))
        taken.append((name.x0 * to_pt, name.x1 * to_pt, name.y0 * to_pt, name.y1 * to_pt))
    # The highest first: there is less room above it.
    named = zip(points, dots, spots, strict=True)
    for point, dot, at in sorted(named, key=lambda each: -each[2][1]):
        text = " = ".join([*(["original"] if point["original"] else []), *point["answers"]])
        if not text:
            continue
        wide = LETTER_PT * len(text)
        free = []
        for share, up in PLACES:
            # Moved in from the sides, where it would reach over them.
            left = min(max(at[0] + 10 * (1 - 2 * share) - wide * share, room[0]), room[1] - wide)
            box = (left, left + wide, at[1] + up, at[1] + up + LINE_PT)
            if room[2] < box[2] and box[3] < room[3]:
                free.append((sum(_meet(box, other) for other in taken), up, box))
        # Where none is free, the first of those that hide least.
        _, up, box = min(free, key=lambda place: place[0])
        left = box[0]
        taken.append(box)
        axes.annotate(
            text, dot, xytext=(left - at[0], up), textcoords="offset points",
            ha="left", va="bottom", color=INK, zorder=4,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.8},
        )  # fmt: skip


LETTER_PT, LINE_PT, DOT_PT = 6.6, 14.0, 4.0
BESIDE = -LINE_PT / 2
PLACES = [
    (share, up)
    for distance in range(8)
    for up in (6 + LINE_PT * distance, BESIDE, -6 - LINE_PT * (distance + 1))
    for share in ((0.0, 1.0) if up == BESIDE else (0.0, 1.0, 0.5))
]
"""Where a name may stand by its point, the best place first: which share of it is on the left, and
how high it is."""


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return min(one[1], other[1]) > max(one[0], other[0]) and min(one[3], other[3]) > max(
        one[2], other[2]
    )
