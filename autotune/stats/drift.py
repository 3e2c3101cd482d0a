"""The array's drift through a run (another load, heat, fill level), and taking it out. Pure.

The baseline comes back through the run. A change between its measurements is taken to be the same,
on the log scale, for every setting.
"""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures

SIGNIFICANT = 3.0
"""How many standard deviations of the noise a drift has to be apart; else it is noise,
and taking it out would only add to it."""


@dataclass(frozen=True)
class Anchor:
    """The baseline's figures at a time, in seconds on any one clock."""

    time_s: float
    figures: Figures


LEAST_NOISE = 0.02
"""Of a figure's logarithm, though a measurement may look steadier."""


def noise(anchors: Sequence[Anchor], name: str) -> float:
    """The spread of a figure between the first two anchors, which were neighbours in time; no
    less than the spread within them."""
    within = max((a.figures[name].spread for a in anchors[:2] if name in a.figures), default=0.0)
    return max(within, _apart(anchors, name))


def _apart(anchors: Sequence[Anchor], name: str) -> float:
    """The spread between the first two anchors alone."""
    values = [a.figures[name].value for a in anchors[:2] if name in a.figures]
    return abs(math.log(values[1] / values[0])) / math.sqrt(2) if len(values) == 2 else 0.0


def _path(anchors: Sequence[Anchor], name: str) -> list[tuple[float, float]]:
    """When and how far (log scale) the figure has moved from where the baseline stood at the start
    (the first two anchors); empty if all anchors agree within noise."""
    seen = [(a.time_s, a.figures[name]) for a in anchors if name in a.figures]
    if len(seen) < 3:
        return []
    start, apart = _together([figure for _, figure in seen[:2]]), _apart(anchors, name)
    if not any(_differ(start, later, apart) for _, later in seen[2:]):
        return []
    return [
        (seen[1][0], 0.0),
        *((time, math.log(later.value / start.value)) for time, later in seen[2:]),
    ]


def _together(figures: Sequence[Estimate]) -> Estimate:
    """One estimate of these: of one that is steady and one that is not, the steady one counts."""
    weights = [1 / max(figure.spread, LEAST_NOISE) ** 2 for figure in figures]
    logs = [math.log(figure.value) for figure in figures]
    mean = sum(w * log for w, log in zip(weights, logs, strict=True)) / sum(weights)
    return Estimate(math.exp(mean), 1 / math.sqrt(sum(weights)))


def _differ(one: Estimate, other: Estimate, apart: float) -> bool:
    """Whether they are further from each other than their spreads, and one of `apart`, let us
    expect."""
    spread = max(math.hypot(one.spread, other.spread), apart, LEAST_NOISE)
    return abs(math.log(one.value / other.value)) >= SIGNIFICANT * spread


def has_drifted(anchors: Sequence[Anchor], name: str) -> bool:
    """Whether the anchors tell another level of the figure than that of the start."""
    return bool(_path(anchors, name))


def drift(anchors: Sequence[Anchor], name: str, time_s: float) -> tuple[float, float]:
    """How far (log scale) the figure has moved at a time from where the baseline stood at the
    start, and how uncertain that is (a standard deviation).

    Between two anchors it moved in one step, at a time that nobody knows: so the expectation is
    on the line between them, and the further they are apart the less is known.
    """
    path = _path(anchors, name)
    times = [time for time, _ in path]
    right = bisect.bisect_left(times, time_s)
    if right == 0:
        return 0.0, 0.0
    if right == len(path):
        return path[-1][1], abs(path[-1][1] - path[-2][1]) / 2
    (t0, y0), (t1, y1) = path[right - 1], path[right]
    passed = (time_s - t0) / (t1 - t0)
    return y0 + (y1 - y0) * passed, abs(y1 - y0) * math.sqrt(passed * (1 - passed))


def is_moving(anchors: Sequence[Anchor]) -> bool:
    """Whether the newest anchor shows another level than the one before it."""
    for name, newest in anchors[-1].figures.items():
        earlier = [a.figures[name] for a in anchors[:-1] if name in a.figures]
        if not _path(anchors, name) or not earlier:
            continue
        before = earlier[-1] if len(earlier) > 2 else _together(earlier)
        if _differ(before, newest, _apart(anchors, name)):
            return True
    return False


def without_drift(
    figures: Figures, time_s: float, anchors: Sequence[Anchor]
) -> dict[str, Estimate]:
    """The figures as they would have been at the start of the run."""
    moved = {name: drift(anchors, name, time_s) for name in figures}
    return {
        name: Estimate(e.value / math.exp(moved[name][0]), math.hypot(e.spread, moved[name][1]))
        for name, e in figures.items()
    }


def neighbours(anchors: Sequence[Anchor]) -> Sequence[Anchor]:
    """Those that tell the noise: all, or after a drift the first two, which were neighbours."""
    return anchors[:2] if anchors and largest_drifts(anchors) else anchors


def largest_drifts(anchors: Sequence[Anchor]) -> dict[str, float]:
    """The figures that drifted, with the largest ratio to the start (1.0: none)."""
    found = {}
    for name in anchors[0].figures:
        moves = [drift(anchors, name, a.time_s)[0] for a in anchors]
        largest = max(moves, key=abs)
        if largest:
            found[name] = math.exp(largest)
    return found
