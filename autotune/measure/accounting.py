"""What the block layer counts of an array's own requests, looked at often. Adds no load.

`/sys/block/mdX/stat` has the requests completed, the ms that they took in all, and how many are in
flight (kernel Documentation/block/stat.rst); md counts what is asked of the array there, never a
sync's own I/O (seen on 6.1.176). Of a minute the ms are only a mean, which says nothing about a
p99. But looked at every 20 ms, most looks find one request or none, and what it took is then known.
For those that ended together there are bounds: by what they took in all, and by how long ago fewer
were in flight than would have to have been. So the p99 lies between two figures, which are close
together unless requests are many and nearly as slow as the ceiling. The ms come from jiffies, so
each latency is known to 1 to 10 ms.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autotune.system import sysfs
from autotune.system.array import PARITY, Array

MS = 1_000_000
_SINCE = (5, 14)
_AT_THE_END_SINCE = (6, 4)
"""Some kernels before that count at the end, too."""
CONTRADICTIONS = 20
"""So many more looks find fewer new requests than more are in flight: of one that counts as they
begin, only a few do, which fall between the kernel's reading of both."""
_PRECISION = 1.005
_FOREVER_NS = 1 << 62


@dataclass(frozen=True)
class Batch:
    """Requests of one direction that ended between two looks. `total_ns` is what all of them took
    together; the slowest took at most the first of `at_most_ns`, the second slowest at most the
    second, and so on (no bounds but by the total, if it is empty)."""

    requests: int
    total_ns: int
    at_most_ns: tuple[int, ...] = ()

    def slow_at_most(self, ns: float) -> int:
        """How many may have taken so long or longer, at the most."""
        by_total = min(self.requests, int(self.total_ns / ns))
        if not self.at_most_ns:
            return by_total
        return min(by_total, sum(limit >= ns for limit in self.at_most_ns))

    def slow_at_least(self, ns: float) -> int:
        """How many have surely taken so long or longer."""
        beyond = self.total_ns - self.requests * ns
        if beyond < 0:
            return 0
        slowest = min(self.at_most_ns[0], self.total_ns) if self.at_most_ns else self.total_ns
        # So many at their slowest, and the rest just below.
        sure = math.ceil(beyond / (slowest - ns)) if slowest > ns else 1
        return min(max(1, sure), self.slow_at_most(ns))


@dataclass(frozen=True)
class Counts:
    """An array's counters: reads and writes since it was started, requests in flight now."""

    reads: Batch
    writes: Batch
    in_flight: int
    others: int = 0
    """Discards and flushes, which are in flight, too."""

    @property
    def requests(self) -> int:
        return self.reads.requests + self.writes.requests + self.others

    @property
    def total_ns(self) -> int:
        return self.reads.total_ns + self.writes.total_ns


def parse(text: str) -> Counts:
    """The counters from the text of a `stat` file."""
    words = [int(word) for word in text.split()]
    reads, writes = Batch(words[0], words[3] * MS), Batch(words[4], words[7] * MS)
    return Counts(reads, writes, words[8], sum(words[11:12] + words[15:16]))


class Looks:
    """Consecutive looks at an array's counters. `early`: whether the kernel counts a request as it
    begins (`counts_early`), be it that what is seen contradicts that."""

    def __init__(self, counts: Counts, now_s: float, early: bool = False) -> None:
        self._counts = counts
        self._early = early
        self._contradictions = 0
        self._owed_ns = 0
        # Whatever is in flight already has been so for an unknown time.
        self._fewer_s = [-math.inf] * counts.in_flight + [now_s]
        """For each number from 0: when no more than that were last in flight. The last one is of
        the look before."""

    def _remember(self, in_flight: int, now_s: float) -> None:
        known = self._fewer_s
        known += [known[-1]] * (in_flight - len(known))
        known[in_flight:] = [now_s] * max(1, len(known) - in_flight)

    def look(self, counts: Counts, now_s: float) -> list[Batch]:
        """What has ended since the look before; reads and writes apart, if the kernel tells."""
        earlier, self._counts = self._counts, counts
        rise = counts.in_flight - earlier.in_flight
        if rise > 0:
            as_many = counts.requests - earlier.requests >= rise
            self._contradictions = max(0, self._contradictions + (-1 if as_many else 1))
            self._early = self._early and self._contradictions < CONTRADICTIONS
        if self._early:
            ended = [self._both(counts, earlier, rise)]
        else:
            pairs = ((counts.reads, earlier.reads), (counts.writes, earlier.writes))
            ended = [(a.requests - b.requests, a.total_ns - b.total_ns) for a, b in pairs]
        found = [Batch(n, total_ns, self._bounds(n, now_s)) for n, total_ns in ended if n > 0]
        self._remember(counts.in_flight, now_s)
        return found

    def _both(self, counts: Counts, earlier: Counts, rise: int) -> tuple[int, int]:
        """How many requests have ended, and what they took."""
        ended = counts.requests - earlier.requests - rise
        total_ns = counts.total_ns - earlier.total_ns + self._owed_ns
        # It may end between the moments at which the kernel reads both.
        self._owed_ns = 0 if ended > 0 else total_ns
        return ended, total_ns

    def _bounds(self, requests: int, now_s: float) -> tuple[int, ...]:
        """A request that ended now and is not among the n oldest began after the last moment when
        no more than n were in flight."""
        known = self._fewer_s[:requests]
        # More than were ever seen in flight began and ended since the last look.
        known += [self._fewer_s[-1]] * (requests - len(known))
        return tuple(
            _FOREVER_NS if fewer_s == -math.inf else int((now_s - fewer_s) * 1e9)
            for fewer_s in known
        )


def read(array: Array) -> Counts:
    """The counters now. OSError if the array is gone."""
    return parse(sysfs.read(array.block / "stat"))


def counted(array: Array) -> bool:
    """Whether the kernel counts at all; it can be told not to."""
    return sysfs.read_or(array.queue / "iostats", "1") != "0"


def whole(array: Array) -> bool:
    """Whether the counted time is all that a request takes.

    RAID1 and RAID10 count only from when the sync has let a request pass, and kernels before 5.14
    count no time for parity levels (raid1_read_request, raid5_make_request).
    """
    return counted(array) and array.level in PARITY and array.kernel_version >= _SINCE


def counts_early(array: Array) -> bool:
    """Whether the kernel counts a request as it begins, and its time as it ends: beside others, one
    then seems to take the time of several (bdev_start_io_acct; seen on 6.1.176). Such reads and
    writes cannot be told apart."""
    return array.kernel_version < _AT_THE_END_SINCE


def total(batches: Sequence[Batch]) -> int:
    """How many requests there were."""
    return sum(batch.requests for batch in batches)


def slow_at_most(batches: Sequence[Batch], ns: float) -> int:
    """How many requests may have taken so long or longer, at the most."""
    return sum(batch.slow_at_most(ns) for batch in batches)


def slow_at_least(batches: Sequence[Batch], ns: float) -> int:
    """How many requests have surely taken so long or longer."""
    return sum(batch.slow_at_least(ns) for batch in batches)


def slow(batches: Sequence[Batch], ns: float) -> float:
    """How many requests took so long or longer, half way between the bounds: whoever always
    believed the upper one would be slower than the ceiling asks for."""
    return (slow_at_least(batches, ns) + slow_at_most(batches, ns)) / 2


@dataclass(frozen=True)
class Percentile:
    """A percentile in ns, to a percent or so: what is likely, and what is certain."""

    likely: float
    at_least: float
    at_most: float


def percentile(batches: Sequence[Batch], percent: float) -> Percentile | None:
    """A percentile of all requests; None without any."""
    if not batches:
        return None
    allowed = total(batches) * (1 - percent / 100)
    slowest = sorted(batches, key=_fastness)

    def least(count: Callable[[Sequence[Batch], float], float]) -> float:
        def holds(ns: float) -> bool:
            return count(slowest[: bisect_right(slowest, -ns, key=_fastness)], ns) <= allowed

        return _least(holds, float(slowest[0].total_ns + MS))

    return Percentile(least(slow), least(slow_at_least), least(slow_at_most))


def _fastness(batch: Batch) -> int:
    return -batch.total_ns


def _least(holds: Callable[[float], bool], high: float) -> float:
    """The least latency in ns for which something holds that does for `high` and all above it,
    sought from above, where there are few requests to count."""
    low = high / 2
    while low > MS / 10 and holds(low):
        high, low = low, low / 2
    while high > low * _PRECISION:
        middle = math.sqrt(low * high)
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
