"""Batch means: the noise of a mean, from consecutive intervals that are not independent. Pure."""

import functools
import itertools
import math
from collections.abc import Sequence
from statistics import mean, stdev

from autotune.problem.figure import SPREADS_95

CONFIDENCE = 0.95
MIN_BATCHES, MAX_BATCHES = 4, 8


@functools.cache
def student_t(degrees: int, error: float = 1 - CONFIDENCE) -> float:
    """The two-sided point of Student's t that is passed by chance so seldom."""
    from scipy.stats import t  # noqa: PLC0415  (half a second, and only a finished run needs it)

    return float(t.ppf(1 - error / 2, degrees))


def batches(count: int) -> list[tuple[int, int]]:
    """Cut so many intervals (MIN_BATCHES or more) into batches, each of two or more where there
    are enough: the bounds of each."""
    number = max(MIN_BATCHES, min(MAX_BATCHES, count // 2))
    edges = [round(i * count / number) for i in range(number + 1)]
    return list(itertools.pairwise(edges))


def spread_of_mean(values: Sequence[float]) -> float:
    """The relative spread of the mean of batches (MIN_BATCHES or more), wider the fewer they are:
    a spread is known the worse, which Student's t makes up for."""
    widened = student_t(len(values) - 1) / SPREADS_95
    return stdev(values) / mean(values) / math.sqrt(len(values)) * widened
