"""How fast a sync may go, learnt from the share of foreground requests that are too slow. Pure.

A p99 holds a ceiling if at most one request in a hundred is slower. That share, and not a p99 of a
few seconds, is what is followed: it can be counted request by request, and grows with the pace of
the sync. Each slow request lowers the pace by a step, each other one raises it by so much less that
the pace stays where the share is what is aimed at (Robbins and Monro's stochastic approximation, on
a log scale). The steps begin large and become small; what rises while nothing is slow accelerates.
"""

import math

AIM = 0.005
"""Half of what a p99 allows: the share scatters from one half minute to the next."""
FIRST_STEPS, LEAST_STEP = 3.0, 0.08
MOST_RISE, MOST_FALL = 0.04, 0.25
"""Of the log of the pace in a second: doubled in 17 s at the soonest, as a probe shows only some 20
requests in a second and the pace must not be far too high by then; yet a moment's disturbance must
not cost minutes."""
MOST_REQUESTS = 60.0
"""In a second. Slow requests come by the burst of the sync, of which there are two a second, so
many requests tell no more than some."""
HASTE, PATIENCE = 1.65, 0.5
"""The more slow requests were to be expected since the last one, the faster the pace rises, from
some patience on: it is likely to be too low. Were they as many as aimed at, and at random, that
would be as much on average as an even rise (1.65 is e to the power of 0.5)."""


class Pace:
    """The pace of a sync in KiB/s of each member, between `floor_kib` and what it can reach."""

    def __init__(self, floor_kib: float, start_kib: float) -> None:
        self._floor_kib = floor_kib
        self.kib = max(start_kib, floor_kib)
        self._expected = 0.0
        self._quiet = 0.0

    @property
    def at_floor(self) -> bool:
        return self.kib <= self._floor_kib

    def learn(self, requests: int, slow: float, reached_kib: float | None = None) -> None:
        """What a second showed. `reached_kib`: the sync's speed, if it was never held back: what
        the disks give is then the limit, above which a pace means nothing."""
        if reached_kib is not None:
            self.kib = max(self._floor_kib, min(self.kib, 1.25 * reached_kib))
        if not requests:
            return
        scale = min(1.0, MOST_REQUESTS / requests)
        due = AIM * requests * scale
        step = max(LEAST_STEP, 1 / (FIRST_STEPS + self._expected))
        haste = HASTE * max(0.0, self._quiet - PATIENCE)
        change = step * (due * haste - slow * scale)
        self.kib *= math.exp(max(-MOST_FALL, min(MOST_RISE, change)))
        self.kib = max(self._floor_kib, self.kib)
        self._expected += due
        self._quiet = 0.0 if slow else self._quiet + due


def first_guess_kib(free_kib: float, ceiling_ns: float, sleep_s: float) -> float:
    """A pace to begin with, for disks that sync at `free_kib` when nothing holds them back.

    What a request has to wait for is at worst the burst in which md syncs between two sleeps of
    `sleep_s`; at this pace a burst lasts half as long as the ceiling.
    """
    burst_s = ceiling_ns / 2e9
    return free_kib * burst_s / (burst_s + sleep_s)
