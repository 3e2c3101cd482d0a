"""How fast a sync gets on at each place of the members, and what that makes of hours. Pure.

A hard disk is about half as fast at its end as at its beginning. Its platter turns evenly and bits
lie equally close, so the square of the rate falls evenly from byte to byte: what lies between
measured places is interpolated in squares.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

INNER_SHARE = 0.5
"""Of the rate at its beginning, what a hard disk gives at its end, where that is not measured."""
TYPICAL_KIB_S = 234_375.0
"""What a hard disk is supposed to give at its beginning, 240 MB/s, as long as it was never seen:
data sheets of 2020 to 2025 say 180 to 285."""
HELD_SHARE = 0.9
"""Of a limit of md's: whoever is so fast is held by it."""
STEPS = 200
LEAST_SHARE = 0.1
"""Of the fastest place, that an extrapolation comes down to at the most."""
PRECISION = 0.001


@dataclass(frozen=True)
class Platter:
    """`kib_s` of each member at `places`, which rise from 0 (the beginning) to 1 (the end), when
    nothing holds the sync back. ValueError for what no disk can do."""

    places: tuple[float, ...]
    kib_s: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(0 <= a < b for a, b in pairwise((*self.places, math.inf)))
        if not rising or len(self.places) != len(self.kib_s) or not self.kib_s:
            raise ValueError(f"{self.places} and {self.kib_s} are no curve")
        if not all(0 < rate < math.inf for rate in self.kib_s):
            raise ValueError(f"{self.kib_s} are no speeds")

    def at(self, place: float) -> float:
        """KiB/s of each member there."""
        if len(self.places) == 1:
            return self.kib_s[0]
        right = min(max(1, bisect_right(self.places, place)), len(self.places) - 1)
        left = right - 1
        share = (place - self.places[left]) / (self.places[right] - self.places[left])
        low, high = self.kib_s[left] ** 2, self.kib_s[right] ** 2
        return math.sqrt(max(low + share * (high - low), (LEAST_SHARE * max(self.kib_s)) ** 2))

    def seconds(self, size_kib: float, limit_kib_s: float = math.inf, start: float = 0.0) -> float:
        """How long a sync of so large a member takes from a place to the end, if it is never faster
        than a limit."""
        step = (1 - start) / STEPS
        return sum(
            step * size_kib / min(limit_kib_s, self.at(start + (n + 0.5) * step))
            for n in range(STEPS)
        )

    def limit_for(self, size_kib: float, seconds: float, start: float = 0.0) -> float | None:
        """The least limit in KiB/s at which the rest from a place is done in time; None if it is
        not at full speed either."""
        if start >= 1 or size_kib <= 0:
            return 0.0
        if seconds <= 0 or self.seconds(size_kib, start=start) > seconds:
            return None
        low, high = 0.0, max(self.kib_s) * 2
        while high - low > PRECISION * high:
            middle = (low + high) / 2
            if self.seconds(size_kib, middle, start) <= seconds:
                high = middle
            else:
                low = middle
        return high

    def through(self, place: float, kib_s: float) -> "Platter":
        """The same curve, higher or lower, with this rate at a place."""
        factor = kib_s / self.at(place)
        return Platter(self.places, tuple(rate * factor for rate in self.kib_s))

    def seen(self, place: float, kib_s: float, held: bool) -> "Platter":
        """What to think of the disks where they went at this rate. If a limit of md's `held` them
        to it, they are no slower; what is supposed or known of them stays if it is above that."""
        return self if held and self.at(place) >= kib_s else self.through(place, kib_s)


def flat(kib_s: float) -> Platter:
    """As fast everywhere, as flash is."""
    return Platter((0.0,), (kib_s,))


def assumed(kib_s: float, inner_share: float = INNER_SHARE) -> Platter:
    """What a hard disk with this rate at its beginning is like, as far as one can tell unseen."""
    return Platter((0.0, 1.0), (kib_s, inner_share * kib_s))


def measured(places: Sequence[float], kib_s: Sequence[float]) -> Platter:
    """From what was measured at each place. A place that was slower than those after it was
    disturbed rather than slow, since a disk never gets faster towards its end: such neighbours get
    their mean."""
    rates = [[rate] for rate in kib_s]
    while any(_mean(a) < _mean(b) for a, b in pairwise(rates)):
        at = next(n for n, (a, b) in enumerate(pairwise(rates)) if _mean(a) < _mean(b))
        rates[at : at + 2] = [rates[at] + rates[at + 1]]
    return Platter(tuple(places), tuple(_mean(pool) for pool in rates for _ in pool))


def _mean(rates: Sequence[float]) -> float:
    return sum(rates) / len(rates)
