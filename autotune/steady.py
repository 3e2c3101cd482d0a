"""When a figure is steady, and what it is then. Pure.

Own check on fio's per-interval counters rather than fio's `ss=`: the rate of a check, which fio
does not see, must pass the same test, and so must the count of samples that a percentile needs.
"""

import itertools
import math
from collections.abc import Sequence
from statistics import mean, stdev

from autotune.search import NORMAL_95, Estimate
from autotune.verdict import student_t

STEADY_SPREAD = 0.03
"""A rate is steady when its spread is below this."""
MIN_BATCHES, MAX_BATCHES = 4, 8


def rate(amounts: Sequence[float], seconds: Sequence[float]) -> Estimate | None:
    """The rate (amount per second) over consecutive intervals, with the spread of its mean.

    The spread is that of batch means, each of two intervals or more where there are enough, since
    neighbours are alike: the plain standard error would be too small. So few batches know it
    badly, which Student's t makes up for. None with fewer than four intervals or when nothing
    was done.
    """
    count = len(amounts)
    if count < MIN_BATCHES or sum(amounts) <= 0:
        return None
    batches = max(MIN_BATCHES, min(MAX_BATCHES, count // 2))
    edges = [round(i * count / batches) for i in range(batches + 1)]
    pairs = list(itertools.pairwise(edges))
    rates = [sum(amounts[a:b]) / sum(seconds[a:b]) for a, b in pairs]
    value = sum(amounts) / sum(seconds)
    relative = stdev(rates) / mean(rates) / math.sqrt(batches)
    return Estimate(value, max(relative * student_t(batches - 1) / NORMAL_95, 0.002))


def is_steady(estimate: Estimate | None) -> bool:
    """Whether more intervals would hardly change the figure."""
    return estimate is not None and estimate.spread <= STEADY_SPREAD
