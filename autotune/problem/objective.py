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


def broken_ceilings(figures: Iterable[Figure], measured: Figures) -> list[Figure]:
    """The figures whose measured value is over its ceiling."""
    return [
        figure
        for figure in figures
        if figure.ceiling is not None
        and figure.name in measured
        and measured[figure.name].value > figure.ceiling
    ]


def p_hold(figures: Iterable[Figure], measured: Figures) -> float:
    """The probability that all ceilings hold, from the measured values and their spreads.

    A ceiling whose figure was not measured counts as not known to hold: one half.
    """
    probability = 1.0
    for figure in figures:
        if figure.ceiling is None:
            continue
        estimate = measured.get(figure.name)
        if estimate is None:
            probability *= 0.5
            continue
        margin = math.log(figure.ceiling / estimate.value)
        if estimate.spread > 0:
            probability *= 0.5 * math.erfc(-margin / (estimate.spread * math.sqrt(2)))
        elif margin < 0:
            probability = 0.0
    return probability
