"""What users felt in some seconds, with how well that is known. Pure."""

import math
from collections.abc import Sequence

from autotune.measure import accounting
from autotune.measure.foreground import Second
from autotune.problem.figure import SPREADS_95, Estimate
from autotune.stats import bounds
from autotune.stats.histogram import BRACKET, percentile, samples_needed

CLUSTERING = 2.0
"""How much more the share of slow requests varies than if they came independently: what bursts of
a sync make of it, where too few seconds tell it."""
TOO_SLOW_PERCENT = 99


def felt(seconds: Sequence[Second], percent: float) -> Estimate | None:
    """A percentile in ns of all requests of these seconds; by the probe alone if that was there in
    any of them. None from too few."""
    histograms = [second.histogram for second in seconds if second.histogram]
    if histograms:
        return percentile(histograms, percent)
    batches = [batch for second in seconds for batch in second.batches]
    count = accounting.total(batches)
    if count < samples_needed(percent):
        return None
    share = percent / 100
    far = 100 * BRACKET * math.sqrt(share * (1 - share) * CLUSTERING / count)
    middle = accounting.percentile(batches, percent)
    low = accounting.percentile(batches, max(percent - far, 0.1))
    high = accounting.percentile(batches, min(percent + far, 100 - 100 / count))
    if middle is None or low is None or high is None:
        return None
    sampling = math.log(max(high.likely, 1) / max(low.likely, 1)) / 2 / BRACKET
    clock = math.log(middle.at_most / max(middle.at_least, 1)) / 2 / SPREADS_95
    return Estimate(middle.likely, max(math.hypot(sampling, clock), 1 / 128))


def surely_over(seconds: Sequence[Second], ceiling_ns: float) -> bool:
    """Whether the p99 of these seconds is above a ceiling beyond doubt."""
    histograms = [second.histogram for second in seconds if second.histogram]
    if histograms:
        return bounds.surely_over(histograms, ceiling_ns, TOO_SLOW_PERCENT)
    batches = [batch for second in seconds for batch in second.batches]
    count, slow = accounting.total(batches), accounting.slow_at_least(batches, ceiling_ns)
    usual = count * (1 - TOO_SLOW_PERCENT / 100)
    # Three deviations of what chance would make of just the ceiling.
    return slow > usual + 3 * math.sqrt(CLUSTERING * max(usual, 1))
