"""Names beside the dots of a picture, where they hide nothing."""

import itertools
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.textpath import TextPath

from autotune.report.drawing import FAINT, INK

Dots = Sequence[tuple[float, float]]
LINE_PT, DOT_PT = 14.0, 4.0
ROOM = 1.08
"""How much wider a name may be than in the font that it is measured in."""
BESIDE = -LINE_PT / 2
PLACES = [
    (share, up)
    for distance in range(8)
    for up in (6 + LINE_PT * distance, BESIDE, -6 - LINE_PT * (distance + 1))
    for share in ((0.0, 1.0) if up == BESIDE else (0.0, 1.0, 0.5))
]
"""Where a name may stand by its dot, the best place first: which share of it is on the left, and
how high it is."""


def name_dots(
    drawing: Figure,
    axes: Axes,
    dots: Dots,
    names: Sequence[str],
    lines: Sequence[Dots],
    walls: Sequence[Annotation],
) -> None:
    """Name dots (data coordinates; "": no name). No name stands on another one, on a dot, on a line
    (its corners, upright or level), or on the line and name of a ceiling (`walls`), if there is any
    other place."""
    drawing.draw_without_rendering()
    to_pt = 72 / drawing.dpi
    whole = axes.get_window_extent()
    room = (whole.x0 * to_pt, whole.x1 * to_pt, whole.y0 * to_pt, whole.y1 * to_pt)
    spots = [axes.transData.transform(dot) * to_pt for dot in dots]
    taken = [(x - DOT_PT, x + DOT_PT, y - DOT_PT, y + DOT_PT) for x, y in spots]
    for line in lines:
        corners = [axes.transData.transform(corner) * to_pt for corner in line]
        for (x0, y0), (x1, y1) in itertools.pairwise(corners):
            taken.append((min(x0, x1) - 1, max(x0, x1) + 1, min(y0, y1) - 1, max(y0, y1) + 1))
    for wall in walls:
        x = axes.transData.transform((wall.xy[0], 1.0))[0] * to_pt
        name = wall.get_window_extent()
        taken.append((x - 1, x + 1, room[2], room[3]))
        taken.append((name.x0 * to_pt, name.x1 * to_pt, name.y0 * to_pt, name.y1 * to_pt))
    # The highest first: there is less room above it.
    for text, dot, at in sorted(zip(names, dots, spots, strict=True), key=lambda each: -each[2][1]):
        if not text:
            continue
        wide = ROOM * TextPath((0, 0), text, size=mpl.rcParams["font.size"]).get_extents().width
        free = []
        for share, up in PLACES:
            # Moved in from the sides, where it would reach over them.
            left = min(max(at[0] + 10 * (1 - 2 * share) - wide * share, room[0]), room[1] - wide)
            box = (left, left + wide, at[1] + up, at[1] + up + LINE_PT)
            if room[2] < box[2] and box[3] < room[3]:
                free.append((sum(_meet(box, other) for other in taken), up, box))
        # Where none is free, the first of those that hide least.
        _, up, box = min(free, key=lambda place: place[0])
        taken.append(box)
        axes.annotate(
            text, dot, xytext=(box[0] - at[0], up), textcoords="offset points",
            ha="left", va="bottom", color=INK, zorder=4,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.8},
        )  # fmt: skip


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return min(one[1], other[1]) > max(one[0], other[0]) and min(one[3], other[3]) > max(
        one[2], other[2]
    )
