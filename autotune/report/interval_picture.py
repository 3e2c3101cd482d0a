"""The picture of ratios with their intervals, one below the other."""

from autotune.report.drawing import INK, Picture, figure, log_axis, picture, ratio

FAR = 4.0
"""An interval that reaches further than this ratio is cut off at the edge, with an arrow."""


def intervals(
    name: str,
    rows: list[tuple[str, float, float, float, str]],
    title: str,
    description: str,
    beside: str = "the original settings",
) -> Picture:
    """A dot with its interval for each row (label, value, low, high, colour), on a log axis of
    ratios around 1, which is what it is held `beside`."""
    drawing, (axes,) = figure(0.75 + 0.34 * len(rows))
    spans = [max(high, 1 / low, 1.1) for _, _, low, high, _ in rows]
    # What was measured is never off the axis.
    most = max(max(value, 1 / value) for _, value, *_ in rows)
    far = min(max(FAR, most * 1.3), max(spans) * 1.08)
    for at, (_, value, low, high, colour) in enumerate(reversed(rows)):
        left, right = max(low, 1 / far), min(high, far)
        axes.plot([left, right], [at, at], color=colour, linewidth=2)
        for edge, cut, marker in ((left, low < left, "<"), (right, high > right, ">")):
            axes.plot([edge], [at], marker if cut else "|", color=colour, markersize=6)
        axes.plot([min(max(value, 1 / far), far)], [at], "o", color=colour, markersize=6)
    axes.axvline(1.0, color=INK, linewidth=1)
    axes.set_yticks(range(len(rows)), [row[0] for row in reversed(rows)])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(1 / far / 1.03, far * 1.03)
    log_axis(axes, "x", ratio)
    axes.set_xlabel(f"ratio to {beside}")
    return picture(name, drawing, title, description)
