"""How fast a sync may go, learnt from the foreground's p99 at the paces of late. Pure.

How a p99 follows the pace is another thing on every array: in the lab it rises by its square root,
on disks near their limit by several times as much. So no curve is assumed but that it rises. Over
the last minute, the p99 and the pace at which the slowest requests were seen give a goal, the pace
at which the p99 would be what is wanted if the two were in proportion. That goes too far nowhere
but on steep curves, and there comes back. Seconds at quite another pace say little of this one and
are forgotten, so a pace that is far too low or high is judged by its last seconds, one that is
about right by a whole minute. A moment's disturbance, which lowers the pace, is over in a minute.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.guard.goals import Promise
from autotune.guard.throttle import SLEEP_S
from autotune.measure.foreground import Second, p99

WANTED = 0.8
"""Of the ceiling, what the p99 over a minute is kept to: a p99 of half a minute scatters by a
tenth, and nearly all of these are to stay under the ceiling."""
MEMORY_S = 60
NEAR = 1.25
"""Seconds at a pace further from the present one than this factor are forgotten."""
SLOW_SHARE = 0.005
"""Where a few requests wait for very long and all others do not, as beside a rebuild of RAID 10,
most single seconds look good. So the pace rises only if no more than this were slow in the last
minute, at this pace and lower ones: half of what a p99 allows, which is to hold each half minute.
"""
MOST_RISE, MOST_FALL = 0.04, 0.25
"""Of the log of the pace in a second: doubled in 17 s at the soonest, as a probe shows only some 20
requests in a second and the pace must not be far too high by then."""


@dataclass(frozen=True)
class _Seen:
    second: Second
    kib: float


class Pace:
    """The pace of a sync in KiB/s of each member, between `floor_kib` and what it can reach, under
    which the p99 stays below `ceiling_ns`."""

    def __init__(self, floor_kib: float, start_kib: float, ceiling_ns: float) -> None:
        self._floor_kib = floor_kib
        self._wanted_ns = WANTED * ceiling_ns
        self._seen: list[_Seen] = []
        self._latest: deque[_Seen] = deque(maxlen=MEMORY_S)
        self.kib = max(start_kib, floor_kib)

    def hold(self, floor_kib: float, _free_kib: float) -> None:
        """From here on the pace is never below `floor_kib`."""
        self._floor_kib = floor_kib
        self.kib = max(self.kib, floor_kib)

    @property
    def at_floor(self) -> bool:
        return self.kib <= self._floor_kib

    def learn(self, second: Second, reached_kib: float | None = None) -> None:
        """Take what a second showed. `reached_kib`: the sync's speed, if it was never held back:
        what the disks give is then the limit, above which a pace means nothing."""
        if reached_kib is not None:
            self.kib = max(self._floor_kib, min(self.kib, 1.25 * reached_kib))
        near = [seen for seen in self._seen if 1 / NEAR < seen.kib / self.kib < NEAR]
        self._seen = [*near, _Seen(second, self.kib)][-MEMORY_S:]
        self._latest.append(self._seen[-1])
        latest = p99(seen.second for seen in self._seen)
        if latest is None:
            return
        change = math.log(_where_slow(self._seen) * self._wanted_ns / latest.likely / self.kib)
        if change > 0 and self._was_too_slow():
            return
        self.kib *= math.exp(max(-MOST_FALL, min(MOST_RISE, change)))
        self.kib = max(self._floor_kib, self.kib)

    def _was_too_slow(self) -> bool:
        """Whether too many requests were slow of late, at this pace or lower ones."""
        lower = [each.second for each in self._latest if each.kib < NEAR * self.kib]
        return sum(s.slow for s in lower) > SLOW_SHARE * sum(s.sampled for s in lower)

    def forget(self) -> None:
        """Keep the pace, but begin anew to judge it."""
        self._seen.clear()
        self._latest.clear()


class Share:
    """The pace of a policy: so much of what the disks can do, however slow requests are. A share of
    0 stays at its floor."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._floor_kib = self.kib = 0.0

    def hold(self, floor_kib: float, free_kib: float) -> None:
        """Take the share of what the disks can do by now, and no less than the floor."""
        self._floor_kib = floor_kib
        self.kib = max(self._share * free_kib, floor_kib)

    @property
    def at_floor(self) -> bool:
        return self.kib <= self._floor_kib

    def learn(self, second: Second, reached_kib: float | None = None) -> None:
        """There is nothing to learn from requests."""

    def forget(self) -> None:
        """Nothing is known of them."""


def _where_slow(seen: Sequence[_Seen]) -> float:
    """The mean pace at which slow requests were seen; at which any were, if none was slow."""
    weights = [each.second.slow for each in seen]
    if not any(weights):
        weights = [float(each.second.sampled) for each in seen]
    return sum(w * each.kib for w, each in zip(weights, seen, strict=True)) / sum(weights)


def _first_guess_kib(free_kib: float, ceiling_ns: float) -> float:
    """A pace to begin with, for disks that sync at `free_kib` when nothing holds them back.

    What a request has to wait for is at worst the burst in which md syncs between two sleeps of
    SLEEP_S; at this pace a burst lasts half as long as the ceiling.
    """
    burst_s = ceiling_ns / 2e9
    return free_kib * burst_s / (burst_s + SLEEP_S)


def first_pace(promise: Promise, least_kib: float, free_kib: float) -> Pace | Share:
    """What to begin with, for disks that sync at `free_kib` when nothing holds them back."""
    if promise.share is not None or math.isinf(promise.ceiling_ns):
        return Share(promise.share or 0.0)
    guess = _first_guess_kib(free_kib, promise.ceiling_ns)
    return Pace(least_kib, guess, promise.ceiling_ns)
