"""Score and ceilings. Pure."""

import math
from collections.abc import Iterable, Mapping

from autotune.problem.figure import Estimate, Figure

Figures = Mapping[str, Estimate]


def gain(figures: Iterable[Figure], measured: Figures, baseline: Figures) -> Estimate | None:
    """The weighted geometric mean of the throughputs relative to the baseline's.

    1.0 is as good as the baseline. The spread takes the figures' errors as independent. None if
    a weighted figure is missing from either side: then nothing can be claimed.
    """
    weighted = [figure for figure in figures if figure.weight > 0]
    total = sum(figure.weight for figure in weighted)
    if not weighted or any(f.name not in measured or f.name not in baseline for f in weighted):
        return None
    log_gain = variance = 0.0
    for figure in weighted:
        share = figure.weight / total
        now, before = measured[figure.name], baseline[figure.name]
        log_gain += share * math.log(now.value / before.value)
        variance += share**2 * (now.spread**2 + before.spread**2)
    return Estimate(math.exp(log_gain), math.sqrt(variance))


def broken_ceilings(
    figures: Iterable[Figure], measured: Figures, baseline: Figures
) -> list[Figure]:
    """The figures whose measured value is over its limit, beside what the baseline showed."""
    broken = []
    for figure in figures:
        limit = figure.limit(baseline)
        if limit is not None and figure.name in measured and measured[figure.name].value > limit:
            broken.append(figure)
    return broken


def limits(figures: Iterable[Figure], baseline: Figures) -> dict[str, float]:
    """How high each limited figure may be beside what the baseline showed, by name, in ns."""
    found = {figure.name: figure.limit(baseline) for figure in figures if figure.limited}
    return {name: limit for name, limit in found.items() if limit is not None}


def p_hold(figures: Iterable[Figure], measured: Figures, baseline: Figures) -> float:
    """The probability that all limits hold, from the measured values and their spreads.

    One whose figure was not measured counts as not known to hold: one half. One relative to the
    baseline surely holds where what is told is the baseline's own measurement, carried over.
    """
    probability = 1.0
    for figure in figures:
        if not figure.limited:
            continue
        estimate, before = measured.get(figure.name), baseline.get(figure.name)
        limit = figure.limit(baseline)
        if estimate is None or limit is None:
            probability *= 0.5
            continue
        if figure.ratio is not None and estimate == before:
            continue
        margin = math.log(limit / estimate.value)
        doubt = before.spread if figure.ratio is not None and before is not None else 0.0
        spread = math.hypot(estimate.spread, doubt)
        if spread > 0:
            probability *= 0.5 * math.erfc(-margin / (spread * math.sqrt(2)))
        elif margin < 0:
            probability = 0.0
    return probability
