"""How a guarded sync gets on: what remains, what the deadline needs of it, and whether deadline and
ceiling exclude each other. Knows no clock and no file: both are told."""

import math
from collections import deque
from dataclasses import dataclass

from autotune.guard.feasibility import LONG_S
from autotune.guard.goals import CEILING, POLICIES, Promise, Remains, least_kib, needed_kib
from autotune.sync_forecast.platter import HELD_SHARE, Platter

FREE_S = 3
"""How many seconds at full speed in a row show what the disks can do."""
AGAIN_S = 600.0
"""How often it is measured anew, since the users of now may be others. Less than one second in a
hundred at full speed leaves their p99 as it is."""
LONGEST_S = 10.0
"""If so many seconds do not show it, it is tried again the next time."""
CONFLICT_S = 30.0
"""For so long the p99 is above the ceiling at the pace that the deadline needs, or the other way
round, before they count as excluding each other."""
LATE_S = 10.0
"""Likewise of a deadline that is lost even at full speed: a sync is slow when it begins."""
RAMP_LOOKS = 2
"""How many seconds it takes to get to full speed, or from there to a pace."""
GRACE_S = LONG_S + 60.0
"""Until a deadline that nobody has named holds."""
MEMORY = 60
RECENT = 20
"""A slow pace is kept in bursts, with seconds without progress between them."""
SLOWER = 0.9


@dataclass(frozen=True)
class SyncTimeLeft:
    """How long the rest takes in seconds: at the mean pace of the last minute, at full speed (if
    all users left), and at somewhat less than that mean. None as long as it cannot be known."""

    left_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None


class SyncOutlook:
    """A sync on its way. `known`: what the disks can do, in the unit of /proc/mdstat, if a forecast
    has measured it; else they have the shape of what is `supposed`, at the height that is seen at
    full speed. `limit_kib`: md's own, that nothing is faster than."""

    def __init__(
        self,
        promise: Promise,
        floor_kib: float,
        supposed: Platter,
        known: Platter | None = None,
        limit_kib: float = math.inf,
    ) -> None:
        self.promise = promise
        self._floor_kib = floor_kib
        self._limit_kib = limit_kib
        self._shape = known or supposed
        self._free = known
        self._free_row: list[float] = []
        self._measured_s: float | None = None
        self._size_kib, self.place, self._now_s = 0.0, 0.0, 0.0
        self._rates: deque[float] = deque(maxlen=MEMORY)
        self._held = 0
        self._looks = 0
        self._conflict_since_s: float | None = None
        self._late_since_s: float | None = None
        self.impossible = False
        """Deadline and ceiling exclude each other, as it looks now."""

    @property
    def known(self) -> bool:
        """Whether it is known what the disks can do."""
        return self._free is not None

    @property
    def needs_to_know(self) -> bool:
        """Whether what was promised depends on what the disks can do."""
        promise = self.promise
        return promise.finish_s is not None or promise.share is not None

    def look(
        self, size_kib: float, place: float, rate_kib: float, held: bool, now_s: float
    ) -> None:
        """A second has passed: where the sync is, how fast it was, whether it was held back."""
        self._size_kib, self.place, self._now_s = size_kib, place, now_s
        if self._measured_s is None or now_s - self._measured_s >= AGAIN_S + LONGEST_S:
            self._measured_s = now_s
        self._held += held
        if held and self._held <= RAMP_LOOKS + 1:
            # How fast it was until then says nothing about how long its pace takes.
            self._rates.clear()
        self._rates.append(rate_kib)
        self._looks += 1
        if self._looks <= RAMP_LOOKS:
            return
        self._free_row = [] if held or rate_kib <= 0 else [*self._free_row, rate_kib][-FREE_S:]
        if len(self._free_row) == FREE_S:
            rate_kib = sum(self._free_row) / FREE_S
            by_limit = rate_kib >= HELD_SHARE * self._limit_kib
            known = self._free if by_limit and self._free is not None else self._shape
            self._free = known.seen(place, rate_kib, by_limit)
            self._measured_s = now_s

    @property
    def due(self) -> bool:
        """Whether the sync is to be let go for some seconds, to see what the disks can do now."""
        return self._measured_s is not None and self._now_s - self._measured_s >= AGAIN_S

    @property
    def remains(self) -> Remains | None:
        if self._free is None or self._size_kib <= 0:
            return None
        return Remains(self._size_kib, self.place, self._free, self._limit_kib)

    @property
    def free_kib(self) -> float:
        """What the disks can do here, under md's limit."""
        return min(self._free.at(self.place), self._limit_kib) if self._free is not None else 0.0

    @property
    def needed_kib(self) -> float | None:
        """The pace that the deadline needs; 0 without one, None if it is lost."""
        if self.remains is None:
            return 0.0
        return needed_kib(self.promise, self.remains, self._now_s)

    @property
    def least_kib(self) -> float:
        """The pace below which the sync is not to be held now."""
        if self.remains is None or not self._binds:
            return self._floor_kib
        least = least_kib(self.promise, self.needed_kib, self._floor_kib)
        if not self.promise.asked:
            least = min(least, max(POLICIES["balanced"] * self.free_kib, self._floor_kib))
        return least

    @property
    def _binds(self) -> bool:
        """Whether the deadline holds by now, if it holds at all. One that nobody has named begins
        to once it would be known that the ceiling is out of reach (feasibility.py)."""
        return self.promise.asked or self._looks > GRACE_S

    @property
    def late(self) -> bool:
        """Whether the deadline is lost even at full speed. For one that nobody has named, the sync
        is never made as fast as that."""
        return self.promise.asked and self.needed_kib is None

    def time_left(self) -> SyncTimeLeft:
        """How long the rest takes."""
        remains, rates = self.remains, list(self._rates)
        pace = _mean(rates)
        if not pace:
            return SyncTimeLeft()
        if remains is None:
            return SyncTimeLeft((1 - self.place) * self._size_kib / pace)
        slow = min(pace, _mean(rates[-RECENT:]) or pace)
        left, high = remains.seconds(pace), remains.seconds(SLOWER * slow)
        until_s = self._until_deadline_s()
        if until_s is not None and self.promise.binds and not self.late:
            # The pace rises as the deadline comes near.
            left, high = min(left, until_s), min(high, until_s)
        low = min(remains.seconds(), left)
        return SyncTimeLeft(left, low, max(high, left))

    def _until_deadline_s(self) -> float | None:
        return self.promise.finish_s - self._now_s if self.promise.finish_s is not None else None

    def judge(self, p99_ns: float | None, pace_kib: float | None) -> None:
        """Whether deadline and ceiling exclude each other: `p99_ns` is that of the last half
        minute, `pace_kib` what the sync is held to, None if it is not."""
        excluding = self._excluding(p99_ns, pace_kib)
        self._conflict_since_s = self._since(excluding, self._conflict_since_s)
        self._late_since_s = self._since(self.late, self._late_since_s)
        lasting = ((self._conflict_since_s, CONFLICT_S), (self._late_since_s, LATE_S))
        self.impossible = any(s is not None and self._now_s - s >= most for s, most in lasting)

    def _since(self, is_so: bool, before_s: float | None) -> float | None:
        if not is_so:
            return None
        return before_s if before_s is not None else self._now_s

    def _excluding(self, p99_ns: float | None, pace_kib: float | None) -> bool:
        until_s, remains = self._until_deadline_s(), self.remains
        if (
            until_s is None
            or remains is None
            or pace_kib is None
            or math.isinf(self.promise.ceiling_ns)
            or not self._binds
        ):
            return False
        if self.promise.first == CEILING:
            return remains.seconds(pace_kib) > until_s
        at_least = self._floor_kib < pace_kib <= 1.01 * self.least_kib
        return at_least and p99_ns is not None and p99_ns > self.promise.ceiling_ns


def _mean(rates: list[float]) -> float:
    return sum(rates) / len(rates) if rates else 0.0
