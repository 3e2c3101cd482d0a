"""What other ceilings would give: throughput for latency, and the reverse. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.problem.figure import Figure
from autotune.problem.objective import Figures
from autotune.problem.setting import Setting
from autotune.quantities import show_latency, show_rate
from autotune.results.pareto import Point

WORTH = 1.1
"""A gain over what is kept that is worth a word on what it would cost."""
MUCH = 1.2
"""Likewise of one figure alone, which noise moves further than all together."""
CALMER = 0.67
"""Likewise a p99 below this part of what is kept."""
ROOM = 1.2


@dataclass(frozen=True)
class Offer:
    """What could be had, for what, the setting that showed it, and the option that asks for it."""

    text: str
    option: str
    setting: Setting
    trials: tuple[int, ...]


def offers(
    figures: Sequence[Figure], candidates: Sequence[Point], kept: Point, baseline: Point
) -> list[Offer]:
    """At most one of each kind. `kept` is what the run ends with."""
    # To go back to the original settings needs no other ceiling.
    others = [p for p in candidates if p.setting != baseline.setting]
    # What is faster under the ceilings there are needs no other ones.
    held = max((p.sure_gain for p in others if p.holds(figures, baseline)), default=0.0)
    daring = [p for p in others if p.sure_gain > held]
    faster = [f for p in daring if (f := _faster(figures, p, kept, baseline)) is not None]
    calmer = [c for p in others if (c := _calmer(figures, p, kept)) is not None]
    return [max(found, key=lambda each: each[0])[1] for found in (faster, calmer) if found]


def was_met(figures: Sequence[Figure], point: Point, measured: Sequence[Figures]) -> bool:
    """Whether a trial of the setting itself measured p99s that a ceiling with room over the point's
    allows: without the array's drift, these may be far below all that was seen."""
    return all(
        min(values) <= ROOM * point.figures[figure.name].value
        for figure in figures
        if figure.limited
        and figure.name in point.figures
        and (values := [m[figure.name].value for m in measured if figure.name in m])
    )


def _faster(
    figures: Sequence[Figure], point: Point, kept: Point, baseline: Point
) -> tuple[float, Offer] | None:
    """How much faster a setting is that passes a ceiling, and what to say of it."""
    over = [
        figure
        for figure in figures
        if (limit := figure.limit(baseline.figures)) is not None
        and figure.name in point.figures
        and point.figures[figure.name].value > limit
    ]
    ratios = {
        f.name: point.figures[f.name].value / kept.figures[f.name].value
        for f in figures
        if f.weight > 0 and f.name in point.figures and f.name in kept.figures
    }
    if not over or not ratios:
        return None
    whole = point.sure_gain / kept.gain.value
    if max(ratios.values()) < MUCH or whole < WORTH**0.5:
        return None
    better = sorted((n for n in ratios if ratios[n] >= WORTH), key=lambda n: -ratios[n])
    gained = " and ".join(f"{name} ×{ratios[name]:.2f}" for name in better)
    price = " and ".join(
        f"{f.name} {show_latency(point.figures[f.name].value)}"
        + (f" instead of {show_latency(now.value)}" if (now := kept.figures.get(f.name)) else "")
        for f in over
    )
    phases = dict.fromkeys(f.phase for f in over)
    option = " ".join(
        f"--p99-ceiling {phase}="
        + roomy(max(point.figures[f.name].value for f in over if f.phase == phase))
        for phase in phases
    )
    text = f"{option}: {gained}, with {price}"
    return whole, Offer(text, option, point.setting, point.trials)


def _calmer(figures: Sequence[Figure], point: Point, kept: Point) -> tuple[float, Offer] | None:
    """How much calmer a slower setting is, and what to say of it."""
    tails = {
        f: point.figures[f.name].value / kept.figures[f.name].value
        for f in figures
        if f.limited and f.name in point.figures and f.name in kept.figures
    }
    if not tails:
        return None
    figure = min(tails, key=lambda each: tails[each])
    shown = point.figures[figure.name]
    if tails[figure] > CALMER or shown.interval[1] > kept.figures[figure.name].value:
        return None
    lost = {
        f: point.figures[f.name].value / kept.figures[f.name].value
        for f in figures
        if f.weight > 0 and f.name in point.figures and f.name in kept.figures
    }
    worst = min(lost, key=lambda each: lost[each], default=None)
    option = f"--p99-ceiling {figure.phase}={roomy(shown.value)}"
    cost = ""
    if worst is not None and lost[worst] < 0.98:
        cost = (
            f", with {worst.name} {show_rate(point.figures[worst.name].value)} instead of "
            f"{show_rate(kept.figures[worst.name].value)}"
        )
    text = (
        f"{option}: {figure.name} {show_latency(shown.value)} instead of "
        f"{show_latency(kept.figures[figure.name].value)}{cost}"
    )
    return 1 / tails[figure], Offer(text, option, point.setting, point.trials)


def roomy(ns: float) -> str:
    """A round limit with some room over what was shown, as the option takes it."""
    unit, scaled = ("ms", ns * ROOM / 1e6) if ns * ROOM >= 1e6 else ("us", ns * ROOM / 1e3)
    step = 10.0 ** (math.floor(math.log10(scaled)) - 1)
    return f"{math.ceil(scaled / step - 1e-9) * step:g}{unit}"
