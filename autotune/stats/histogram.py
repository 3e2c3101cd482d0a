"""Latency histograms as fio's `json+` gives them: ns of a bucket -> count. Pure.

fio's buckets are within 1/64 of the true value (fio HOWTO, "json+" output). A histogram that was
cumulative since the start becomes one of an interval by subtraction, and those of several
intervals add up to one exact enough for any percentile.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from autotune.problem.figure import Estimate
from autotune.stats.batch_means import MIN_BATCHES, batches

Histogram = Mapping[int, int]

BRACKET = 2.0
"""Not nearer, since the tail that a percentile's spread is about begins there."""
SAMPLES_BEYOND = 4
"""Fewer samples beyond a percentile than this, and it is said to be unsupported."""


def difference(later: Histogram, earlier: Histogram) -> dict[int, int]:
    """The samples of `later` that are not in `earlier` (both cumulative since the same start)."""
    return {ns: n - earlier.get(ns, 0) for ns, n in later.items() if n > earlier.get(ns, 0)}


def total(histograms: Sequence[Histogram]) -> dict[int, int]:
    """All samples of all histograms together."""
    counts: Counter[int] = Counter()
    for histogram in histograms:
        counts.update(histogram)
    return dict(counts)


def samples_needed(percentile: float) -> int:
    """How many samples support a percentile (0..100)."""
    return math.ceil(SAMPLES_BEYOND / (1 - percentile / 100))


def at_rank(ordered: list[tuple[int, int]], rank: float) -> int:
    """The latency in ns of the sample at a rank, of buckets in ascending order."""
    seen = 0
    for ns, count in ordered:
        seen += count
        if seen >= rank:
            return ns
    return ordered[-1][0]


def slower(histogram: Histogram, ns: float) -> int:
    """How many samples took longer."""
    return sum(count for bucket, count in histogram.items() if bucket > ns)


def clustering(histograms: Sequence[Histogram], ns: float) -> float:
    """How many times as much the share of samples above a latency varies from batch to batch as
    it would if samples were independent (survey statistics' design effect); 1 or more.

    Slow requests come in bursts, so many samples are worth as few as this many times fewer. With
    too few consecutive intervals to know, infinity.
    """
    if len(histograms) < MIN_BATCHES:
        return math.inf
    parts = [total(histograms[a:b]) for a, b in batches(len(histograms))]
    counts = [sum(part.values()) for part in parts]
    slow = [slower(part, ns) for part in parts]
    share = sum(slow) / max(sum(counts), 1)
    independent = sum(counts) * share * (1 - share)
    if independent == 0:
        return 1.0
    squares = sum((s - share * n) ** 2 for s, n in zip(slow, counts, strict=True))
    return max(1.0, squares * len(parts) / (len(parts) - 1) / independent)


def percentile(histograms: Sequence[Histogram], percent: float) -> Estimate | None:
    """A percentile in ns over consecutive intervals, or None if too few samples support it.

    The spread follows from the order statistics: the ranks BRACKET standard deviations to either
    side bracket the value. The deviation is the binomial one, made larger by the samples'
    clustering.
    """
    histogram = total(histograms)
    count = sum(histogram.values())
    if count < samples_needed(percent) or len(histograms) < MIN_BATCHES:
        return None
    ordered = sorted(histogram.items())
    share = percent / 100
    rank = count * share
    value = at_rank(ordered, rank)
    deviation = math.sqrt(count * share * (1 - share) * clustering(histograms, value))
    far = BRACKET * deviation
    # A latency of no time at all is one that the clock was too coarse for.
    low, high = (math.log(max(at_rank(ordered, rank + d), 1)) for d in (-far, far))
    spread = (high - low) / 2 / BRACKET
    return Estimate(float(max(value, 1)), max(spread, 1 / 128))
