"""A latency that rises with the speed of a sync, from noisy points. Pure."""

import math
from collections.abc import Sequence
from itertools import pairwise

from autotune.problem.figure import Estimate


def rising(points: Sequence[tuple[float, Estimate]]) -> list[tuple[float, Estimate]]:
    """Points whose p99 never falls as the speed rises: neighbours that do are noise, and get their
    weighted mean (isotonic regression on log scales)."""
    pools: list[list[tuple[float, Estimate]]] = [[point] for point in sorted(points, key=_speed)]
    while True:
        at = next(
            (n for n, (a, b) in enumerate(pairwise(pools)) if _pooled(a).value > _pooled(b).value),
            None,
        )
        if at is None:
            break
        pools[at : at + 2] = [pools[at] + pools[at + 1]]
    return [(speed, _pooled(pool)) for pool in pools for speed, _ in pool]


def _speed(point: tuple[float, Estimate]) -> float:
    return point[0]


def _pooled(pool: Sequence[tuple[float, Estimate]]) -> Estimate:
    weights = [1 / max(each.spread, 0.01) ** 2 for _, each in pool]
    mean = sum(w * math.log(each.value) for w, (_, each) in zip(weights, pool, strict=True))
    return Estimate(math.exp(mean / sum(weights)), 1 / math.sqrt(sum(weights)))


def between(known: Sequence[tuple[float, Estimate]], speed: float) -> Estimate:
    """In proportion between two points, the log of the p99 against the speed; and its spread."""
    for (low, first), (high, second) in pairwise(known):
        if low <= speed <= high and high > low:
            share = (speed - low) / (high - low)
            log = (1 - share) * math.log(first.value) + share * math.log(second.value)
            spread = (1 - share) * first.spread + share * second.spread
            return Estimate(math.exp(log), spread)
    return known[0][1] if speed < known[0][0] else known[-1][1]
