"""The array's drift through a run (another load, heat, fill level), and taking it out. Pure.

The baseline comes back through the run. Between its measurements a figure's change is taken to be
linear on the log scale, and the same for every setting.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.objective import Figures
from autotune.search import Estimate

SIGNIFICANT = 3.0
"""So many standard deviations of the noise apart, and the baseline has drifted; else it is noise,
and taking it out would only add to it."""


@dataclass(frozen=True)
class Anchor:
    """The baseline's figures at a time, in seconds on any one clock."""

    time_s: float
    figures: Figures


def noise(anchors: Sequence[Anchor], name: str) -> float:
    """The spread of a figure between the first two anchors, which were neighbours in time; no
    less than the spread within them."""
    values = [a.figures[name] for a in anchors[:2] if name in a.figures]
    within = max((v.spread for v in values), default=0.0)
    if len(values) < 2:
        return within
    return max(within, abs(math.log(values[1].value / values[0].value)) / math.sqrt(2))


def drift(anchors: Sequence[Anchor], name: str, time_s: float) -> float:
    """How far (log scale) the figure has moved at a time from where the baseline stood at the
    start (the first two anchors); 0 if all anchors agree within noise."""
    seen = [(a.time_s, math.log(a.figures[name].value)) for a in anchors if name in a.figures]
    if len(seen) < 3:
        return 0.0
    start = (seen[0][1] + seen[1][1]) / 2
    scale = max(noise(anchors, name), 0.02)
    if max(abs(log - start) for _, log in seen[2:]) < SIGNIFICANT * scale:
        return 0.0
    path = [(seen[1][0], start), *seen[2:]]
    times = [time for time, _ in path]
    right = bisect.bisect(times, time_s)
    if right == 0:
        return 0.0
    if right == len(path):
        return path[-1][1] - start
    (t0, y0), (t1, y1) = path[right - 1], path[right]
    return y0 + (y1 - y0) * (time_s - t0) / (t1 - t0) - start


def without_drift(
    figures: Figures, time_s: float, anchors: Sequence[Anchor]
) -> dict[str, Estimate]:
    """The figures as they would have been at the start of the run."""
    return {
        name: Estimate(e.value / math.exp(drift(anchors, name, time_s)), e.spread)
        for name, e in figures.items()
    }


def largest_drifts(anchors: Sequence[Anchor]) -> dict[str, float]:
    """The figures that drifted, with the largest ratio to the start (1.0: none)."""
    found = {}
    for name in anchors[0].figures:
        moves = [drift(anchors, name, a.time_s) for a in anchors]
        largest = max(moves, key=abs)
        if largest:
            found[name] = math.exp(largest)
    return found
