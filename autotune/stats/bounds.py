"""What can be said of a trial before it is over. Pure."""

import math
from collections.abc import Mapping, Sequence

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures
from autotune.stats.histogram import Histogram, at_rank, clustering, slower, total

CONFIDENCE = 0.999
DEVIATIONS = 3.3
"""How many standard deviations leave one in a thousand outside, on one side."""
DOUBT = 3.0
"""The clustering may be so many times what a few batches show: seven degrees of freedom hardly
ever show less than a third of a variance (the lower 4 % of chi-squared)."""
ROUGH_SPREAD = 0.3
APART = 5.0
"""How many deviations are looked for at each interval of a phase, so now and then by luck."""
ROUGHLY = 0.08
HEADROOM = 1.25
"""What has not been measured yet may turn out this much better than the best ever seen."""


def surely_over(histograms: Sequence[Histogram], ceiling_ns: float, percent: float) -> bool:
    """Whether a latency's percentile is over the ceiling for all that matters.

    If it held, at most (100 - percent) % of the samples were slower, and so many slow ones as
    there are would be a chance of less than 1 - CONFIDENCE (a binomial tail, of as many samples
    as they are worth: `histogram.clustering`, at its worst).
    """
    worth = 1 / (clustering(histograms, ceiling_ns) * DOUBT)
    histogram = total(histograms)
    count = int(sum(histogram.values()) * worth)
    slow = int(slower(histogram, ceiling_ns) * worth)
    share = 1 - percent / 100
    if slow <= count * share:
        return False
    below = (
        sum(math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(slow))
        if count < 1000
        else _normal_below(slow, count, share)
    )
    return 1 - below < 1 - CONFIDENCE


def clearly_apart(seen: Estimate, before: Estimate, noise: float) -> bool:
    """Whether a figure is surely above or below what it was before, and known well enough to say
    by how much: longer measuring would only tell a large difference to the percent."""
    apart = abs(math.log(seen.value / before.value))
    return seen.spread <= ROUGHLY and apart > APART * math.hypot(seen.spread, before.spread, noise)


def rough_percentile(
    histograms: Sequence[Histogram], percent: float, ceiling_ns: float
) -> Estimate:
    """What a latency that is surely over its ceiling is told to be, from too few samples for a
    percentile: theirs, but over the ceiling, with a spread that says how rough that is."""
    histogram = total(histograms)
    count = sum(histogram.values())
    value = at_rank(sorted(histogram.items()), count * percent / 100)
    return Estimate(max(float(value), ceiling_ns * 1.05), ROUGH_SPREAD)


def _normal_below(slow: int, count: int, share: float) -> float:
    deviation = math.sqrt(count * share * (1 - share))
    return 0.5 * math.erfc((count * share - slow) / deviation / math.sqrt(2))


def best_possible(
    figures: Sequence[Figure],
    measured: Figures,
    baseline: Figures,
    best_seen: Mapping[str, float],
) -> float:
    """The greatest gain that a trial can still show: what is measured at the top of its spread,
    everything else a little above the best ever seen of it (`best_seen`, by figure)."""
    weighted = [f for f in figures if f.weight > 0]
    total = sum(f.weight for f in weighted)
    log_gain = 0.0
    for figure in weighted:
        before = baseline[figure.name].value
        estimate = measured.get(figure.name)
        if estimate is not None:
            top = estimate.value * math.exp(DEVIATIONS * max(estimate.spread, 0.01))
        else:
            top = best_seen.get(figure.name, before) * HEADROOM
        log_gain += figure.weight / total * math.log(top / before)
    return math.exp(log_gain)
