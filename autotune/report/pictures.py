"""The pictures of a report, each drawn from the report's document alone."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.ticker import MaxNLocator

from autotune.report.drawing import (
    AFTER,
    BAD,
    BEFORE,
    FAINT,
    GOOD,
    INK,
    LIMIT,
    Picture,
    figure,
    log_axis,
    picture,
    ratio,
    styled,
)
from autotune.report.interval_picture import FAR, intervals
from autotune.report.load_pictures import course, distribution
from autotune.report.trade_picture import trade

Document = Mapping[str, Any]


def pictures(run: Document, *, brief: bool = False) -> dict[str, Picture]:
    """All pictures of a run that there is something to draw of, by name.

    `brief`: the first only."""
    makers: tuple[tuple[str, Callable[[str, Document], Picture | None]], ...] = (
        ("change", _change),
        ("trade", trade),
        ("trials", _trials),
        ("effects", _effects),
        ("drift", _drift),
    )
    found: dict[str, Picture] = {}
    with styled():
        for name, make in makers[:1] if brief else makers:
            drawn = make(f"r{run['run']}-{name}", run)
            if drawn is not None:
                found[name] = drawn
        parts = (("distributions", distribution), ("courses", course))
        for part, draw in () if brief else parts:
            for number, each in enumerate(run[part]):
                name = f"{part}-{number}"
                found[name] = draw(f"r{run['run']}-{name}", run, each)
    return found


def _colour(conclusion: str) -> str:
    return {"better": GOOD, "worse": BAD}.get(conclusion, BEFORE)


def _change(name: str, run: Document) -> Picture | None:
    rows = []
    for each in run["figures"]:
        change = each["change"]
        if change and not each["quiet"]:
            wanted = "" if each["kind"] == "throughput" else " (less is better)"
            spot = (change["ratio"], change["low"], change["high"], _colour(change["conclusion"]))
            rows.append((each["name"] + wanted, *spot))
    if not rows:
        return None
    gain = run["gain"]
    if gain:
        colour = _colour("better" if gain["low"] > 1 else "worse" if gain["high"] < 1 else "")
        rows.insert(0, ("overall", gain["ratio"], gain["low"], gain["high"], colour))
    said = "; ".join(f"{label} ×{value:.2f} ({low:.2f} to {high:.2f})"
                     for label, value, low, high, _ in rows)  # fmt: skip
    return intervals(name, rows, "Change of each figure, with 95 % intervals", f"{said}.")


def _effects(name: str, run: Document) -> Picture | None:
    rows = [
        (
            f"{share['knob']}\n{share['before']} → {share['after']}"
            + ("" if share["needed"] else " (left as it was)"),
            *(share["ratio"], share["low"], share["high"]),
            _colour("better" if share["low"] > 1 else "worse" if share["high"] < 1 else ""),
        )
        for share in run["effects"]
    ]
    if not rows:
        return None
    said = "; ".join(f"{label.replace(chr(10), ' ')} ×{value:.2f} ({low:.2f} to {high:.2f})"
                     for label, value, low, high, _ in rows)  # fmt: skip
    title = "Each setting's part of the gain, as the models estimate it, with 95 % intervals"
    return intervals(name, rows, title, f"{said}.")


def _trials(name: str, run: Document) -> Picture | None:
    shown = [trial for trial in run["trials"] if trial["gain"]]
    if not shown:
        return None
    drawing, (axes,) = figure(3.0)
    for trial in shown:
        gain, at = trial["gain"], trial["number"]
        original = trial["role"].endswith("original")
        colour = BEFORE if original else AFTER if trial["holds"] else FAINT
        # Cut off where it is far, but never before the dot.
        low = max(gain["low"], min(1 / FAR, gain["value"]))
        high = min(gain["high"], max(FAR, gain["value"]))
        axes.plot([at, at], [low, high], color=colour, linewidth=1)
        filled = colour if trial["holds"] else "none"
        marker = "D" if original else "o"
        axes.plot([at], [gain["value"]], marker, color=colour, mfc=filled, markersize=6)
    best = [(t["number"], t["best"]) for t in run["trials"] if t["best"]]
    axes.step(*zip(*best, strict=True), where="post", color=INK, linewidth=1.2) if best else None
    axes.axhline(1.0, color=BEFORE, linewidth=1, linestyle="--")
    log_axis(axes, "y", ratio)
    axes.set_xlabel("trial")
    axes.set_ylabel("throughput, ratio to the original")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    said = "; ".join(f"trial {t['number']} ×{t['gain']['value']:.2f}" for t in shown)
    return picture(name, drawing, "Trials in order, and the best so far", f"{said}.")


def _drift(name: str, run: Document) -> Picture | None:
    if not run["drift"]:
        return None
    drawing, (axes,) = figure(2.8)
    styles = [(c, s) for s in ("-", "--", ":") for c in (AFTER, BEFORE, LIMIT)]
    said = []
    for (colour, style), each in zip(itertools.cycle(styles), run["drift"], strict=False):
        x = [p["minute"] for p in each["points"]]
        y = [p["value"] for p in each["points"]]
        axes.plot(x, y, style, marker="o", color=colour, label=each["figure"], markersize=5)
        said.append(f"{each['figure']} " + ", ".join(f"×{v:.2f}" for v in y))
    axes.axhline(1.0, color=INK, linewidth=1)
    axes.set_ylim(min(axes.get_ylim()[0], 0.9), max(axes.get_ylim()[1], 1.1))
    axes.yaxis.set_major_formatter(lambda value, _: ratio(round(value, 2)))
    axes.set_xlim(right=max(axes.get_xlim()[1], 1.0))
    axes.set_xlabel("minutes since the start")
    axes.set_ylabel("ratio to the first time")
    drawing.legend(loc="outside upper left", ncols=2)
    title = "The original settings through the run: a change here is one of the array itself"
    return picture(name, drawing, title, f"{'; '.join(said)}.")
