"""The pictures of a report of a design, from its document alone."""

from functools import partial

from autotune.quantities import show_figure
from autotune.report import design_words as words
from autotune.report.design_words import Document
from autotune.report.drawing import (
    AFTER,
    BAD,
    BEFORE,
    GOOD,
    Picture,
    figure,
    log_axis,
    picture,
    styled,
)
from autotune.report.interval_picture import intervals


def design_pictures(key: str, design: Document) -> dict[str, Picture]:
    """All pictures of a design that there is something to draw of, by name."""
    found: dict[str, Picture] = {}
    with styled():
        if drawn := _overall(f"{key}-overall", design):
            found["overall"] = drawn
        for number, each in enumerate(words.figures(design)):
            if drawn := _figure(f"{key}-figures-{number}", design, each):
                found[f"figures-{number}"] = drawn
    return found


def _overall(name: str, design: Document) -> Picture | None:
    colours = {"better": GOOD, "worse": BAD}
    rows = [
        (
            f"{each['letter']}, {each['setting']['level']}",
            *(each["gain"]["ratio"], each["gain"]["low"], each["gain"]["high"]),
            colours.get(each["gain"]["conclusion"], BEFORE),
        )
        for each in design["finalists"]
        if each["gain"]
    ]
    if not rows:
        return None
    said = "; ".join(
        f"{each['letter']}, {each['shape']}: {words.overall(each)}"
        for each in design["finalists"]
        if each["gain"]
    )
    title = "Overall, beside mdadm's default, with 95 % intervals"
    return intervals(name, rows, title, f"{said}.", "mdadm's default")


def _figure(name: str, design: Document, shown: Document) -> Picture | None:
    """What one figure was with each finalist, the default in another colour."""
    show = partial(show_figure, shown["kind"])
    rows = [
        (each, each["figures"][shown["name"]])
        for each in design["finalists"]
        if shown["name"] in each["figures"]
    ]
    if not rows:
        return None
    drawing, (axes,) = figure(0.8 + 0.3 * len(rows))
    for at, (each, estimate) in enumerate(reversed(rows)):
        colour = AFTER if each["gain"] else BEFORE
        span = [estimate["low"], estimate["high"]]
        axes.plot(span, [at, at], "-|", color=colour, linewidth=2, markersize=6)
        marker = "o" if each["gain"] else "D"
        axes.plot([estimate["value"]], [at], marker, color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [each["letter"] for each, _ in reversed(rows)])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(-0.6, len(rows) - 0.4)
    log_axis(axes, "x", show)
    axes.set_xlabel("more is better" if shown["kind"] == "throughput" else "less is better")
    said = "; ".join(f"{each['letter']}: {show(value['value'])}" for each, value in rows)
    return picture(name, drawing, shown["name"], f"{said}.")
