"""The pictures of an array's report, each drawn from the report's document alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from autotune.quantities import KIB, show_ends, show_latency, show_rate, show_seconds
from autotune.report.array_rows import MOST_CHECKS, MOST_PASSES, moment
from autotune.report.array_words import DRAWN_SYNCS
from autotune.report.check_picture import checks, date_axis, days
from autotune.report.drawing import (
    AFTER,
    BEFORE,
    FAINT,
    GOOD,
    INK,
    LIMIT,
    Picture,
    figure,
    picture,
    ratio,
    styled,
)
from autotune.report.guarded_picture import SHADE, guarded_sync, legend, scaled

Document = Mapping[str, Any]


def array_pictures(key: str, array: Document) -> dict[str, Picture]:
    """All pictures of an array that there is something to draw of, by name; `key` tells the
    arrays of a page apart."""
    found: dict[str, Picture] = {}
    with styled():
        for number, sync in enumerate(array["syncs"][:DRAWN_SYNCS]):
            found[f"syncs-{number}"] = guarded_sync(f"{key}-syncs-{number}", sync)
        if array["checks"]:
            found["checks"] = checks(f"{key}-checks", array["checks"][:MOST_CHECKS])
        if array["forecast"] is not None:
            found["forecast"] = _forecast(f"{key}-forecast", array["forecast"])
        if any(each["gain"] for each in array["passes"]):
            found["passes"] = _passes(f"{key}-passes", array["passes"][-MOST_PASSES:])
    return found


def _forecast(name: str, forecast: Document) -> Picture:
    curve = forecast["curve"]
    speeds = [at["kib_s"] * KIB for at in curve]
    drawing, (hours, felt) = figure(4.2, 1.0, 1.0)
    by, unit = scaled(max(at["seconds"]["rebuild"]["value"] for at in curve))
    for action, colour, style in (("check", BEFORE, "--"), ("rebuild", AFTER, "-")):
        for axes, key, scale in ((hours, "seconds", by), (felt, "p99_ns", 1.0)):
            known = [(s, at[key][action]) for s, at in zip(speeds, curve, strict=True)]
            known = [(s, estimate) for s, estimate in known if estimate is not None]
            if not known:
                continue
            x = [s for s, _ in known]
            value, low, high = (
                [estimate[part] / scale for _, estimate in known]
                for part in ("value", "low", "high")
            )
            label = action if axes is hours else None
            axes.plot(x, value, style, color=colour, label=label, marker="o" * (len(x) == 1))
            if len(x) == 1:
                axes.vlines(x, low, high, color=colour, linewidth=1)
            axes.fill_between(x, low, high, color=colour, alpha=SHADE, linewidth=0)
    dots = [(p["kib_s"] * KIB, p["p99"]["value"]) for p in forecast["points"] if p["p99"]]
    for speed, ns in dots:
        if speed:
            felt.plot([speed], [ns], "o", color=INK, markersize=5)
    hours.set_ylabel(f"{unit} for all of it")
    hours.set_ylim(bottom=0)
    felt.set_ylabel("p99 meanwhile")
    felt.set_ylim(bottom=0)
    felt.yaxis.set_major_formatter(lambda value, _: show_latency(value) if value else "0")
    felt.set_xlabel("speed of each member")
    felt.xaxis.set_major_formatter(lambda value, _: show_rate(value) if value else "0")
    felt.xaxis.set_major_locator(MaxNLocator(5))
    legend(drawing, [hours])
    full = curve[-1]["seconds"]["rebuild"]
    time = show_ends(show_seconds(full["low"]), show_seconds(full["high"]))
    said = f"At full speed a rebuild takes {time}; slower ones take longer and disturb less."
    return picture(name, drawing, f"Forecast of {moment(forecast['made'])}, with 95 % bands", said)


MARKS = {"adopted": ("D", GOOD), "advised": ("D", BEFORE), "reverted": ("X", LIMIT)}


def _passes(name: str, passes: Sequence[Document]) -> Picture:
    """The profile against the original settings, from pass to pass."""
    shown = [each for each in passes if each["gain"]]
    when = days([each["at"] for each in shown])
    drawing, (axes,) = figure(2.9)
    for day, each in zip(when, shown, strict=True):
        value, low, high = each["gain"]
        marker, colour = MARKS.get(each["outcome"], ("o", AFTER))
        axes.plot([day, day], [low, high], color=colour, linewidth=1)
        axes.plot([day], [value], marker, color=colour, markersize=6)
    drift = [each["drift"] for each in shown]
    label, marker = "throughput since adoption", "." if len(drift) == 1 else ""
    axes.plot(when, drift, color=FAINT, linestyle=":", label=label, marker=marker)
    axes.axhline(1.0, color=INK, linewidth=1)
    axes.yaxis.set_major_formatter(lambda value, _: ratio(round(value, 2)))
    date_axis(axes, when)
    axes.set_ylabel("ratio to the original")
    drawing.legend(loc="outside upper right")
    said = "; ".join(
        f"{each['at'][:10]} {each['outcome']} ×{each['gain'][0]:.2f}" for each in shown
    )
    return picture(name, drawing, "The profile through time, with 95 % intervals", f"{said}.")
