"""When a figure is steady, and what it is then. Pure.

Own check on fio's per-interval counters rather than fio's `ss=`: the rate of a check, which fio
does not see, must pass the same test, and so must the count of samples that a percentile needs.
"""

from collections.abc import Sequence

from autotune.problem.figure import Estimate
from autotune.stats.batch_means import MIN_BATCHES, batches, spread_of_mean

STEADY_SPREAD = 0.03
"""A rate is steady when its spread is below this."""
LEAST_SPREAD = 0.01
"""However even the intervals, a few seconds are a sample of the minutes around them: reads that
varied by 0.5 % within a phase were 1 to 2 % slower than a minute of the same
(benchmarks.measure.intervals)."""


def rate(amounts: Sequence[float], seconds: Sequence[float]) -> Estimate | None:
    """The rate (amount per second) over consecutive intervals, with the spread of its mean.

    The spread is that of batch means: the plain standard error would be too small. None with
    fewer than four intervals or when nothing was done.
    """
    if len(amounts) < MIN_BATCHES or sum(amounts) <= 0:
        return None
    rates = [sum(amounts[a:b]) / sum(seconds[a:b]) for a, b in batches(len(amounts))]
    return Estimate(sum(amounts) / sum(seconds), max(spread_of_mean(rates), LEAST_SPREAD))


def is_steady(estimate: Estimate | None) -> bool:
    """Whether more intervals would hardly change the figure."""
    return estimate is not None and estimate.spread <= STEADY_SPREAD
