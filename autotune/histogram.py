"""Latency histograms as fio's `json+` gives them: ns of a bucket -> count. Pure.

fio's buckets are within 1/64 of the true value (fio HOWTO, "json+" output). A histogram that was
cumulative since the start becomes one of an interval by subtraction, and those of several
intervals add up to one exact enough for any percentile.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from autotune.search import Estimate

Histogram = Mapping[int, int]

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


def percentile(histogram: Histogram, percent: float) -> Estimate | None:
    """A percentile in ns, or None if there are too few samples to support it.

    The spread follows from the binomial order statistics: the ranks one standard deviation to
    either side bracket the value (independent samples; bursts make the truth wider, which the
    repeats of a measurement show).
    """
    count = sum(histogram.values())
    if count < samples_needed(percent):
        return None
    ordered = sorted(histogram.items())
    share = percent / 100
    deviation = math.sqrt(count * share * (1 - share))
    rank = count * share
    value, low, high = (at_rank(ordered, rank + d) for d in (0, -deviation, deviation))
    # A latency of no time at all is one that the clock was too coarse for.
    spread = max(math.log(max(high, 1) / max(low, 1)) / 2, 1 / 128)
    return Estimate(float(max(value, 1)), spread)
