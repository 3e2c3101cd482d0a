"""Whether anybody waits for what is asked of an array, from the kernel's counters."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from autotune.measure import accounting
from autotune.measure.accounting import Batch, Looks
from autotune.system.array import Array

BUSY_S, BUSY_REQUESTS = 5, 5
"""Fewer than one request a second is nobody who waits."""
STEADY_S, MANY = 3, 16
"""Nor are few writes in fewer of these seconds: a filesystem that nobody uses commits so, with a
line of a log, or with what a guard itself writes there. From so many on they are somebody's."""
WAITED_NS = 1_000_000_000
"""Reads that have waited for so long, all of these seconds together, are somebody's, be they fewer:
the sync itself may be what makes them few."""
MOST_EARLY = 200
"""More of a probe's reads than in a second or two are not on their way; the kernel may not have
counted for a while."""
Count = tuple[int, int, int]
"""Of a second: reads, all requests, and what the reads that ended took together, in ns, as far as
that is known; else as if it was long."""


@dataclass
class _Others:
    """Counts requests of others than the probe, which tells of its own later than the kernel."""

    early: int = 0
    """How many of the probe's were counted before it told of them."""

    def of(self, requests: int, probed: int) -> int:
        """How many of these requests are others', if the probe tells of so many."""
        more = requests - probed - self.early
        self.early = min(max(0, -more), MOST_EARLY)
        return max(0, more)


@dataclass
class Users:
    """The requests of one array since the last second was over, and how many there were lately."""

    array: Array
    whole: bool
    looks: Looks | None = None
    batches: list[Batch] = field(default_factory=list)
    reads: int = 0
    """Since the array was started, at the last look; `noted` of them at the last second's end."""
    noted: int = 0
    waited_ns: int = 0
    """What these reads took together; `noted_ns` of that at the last second's end."""
    noted_ns: int = 0
    other_reads: _Others = field(default_factory=_Others)
    others: _Others = field(default_factory=_Others)
    was_probed: bool = False
    recent: deque[Count] = field(default_factory=lambda: deque(maxlen=BUSY_S))
    """By second."""

    def look(self, now_s: float) -> int:
        """Look at the counters; return how many requests are in flight."""
        counts = accounting.read(self.array)
        if self.looks is None:
            self.looks = Looks(counts, now_s, accounting.counts_early(self.array))
            self.noted, self.noted_ns = counts.reads.requests, counts.reads.total_ns
        self.batches += self.looks.look(counts, now_s)
        self.reads, self.waited_ns = counts.reads.requests, counts.reads.total_ns
        return counts.in_flight

    def second_over(self, probed: int | None) -> int:
        """Note the requests of a second, less so many reads of a probe, if there is one; return how
        many."""
        reads, requests = max(0, self.reads - self.noted), accounting.total(self.batches)
        waited_ns = max(0, self.waited_ns - self.noted_ns)
        if probed is not None and self.was_probed:
            reads, requests = self.other_reads.of(reads, probed), self.others.of(requests, probed)
            # What the probe's own reads took is not told apart.
            waited_ns = 0
        elif probed is not None or self.was_probed:
            # The first and the last of the probe's, of which it does not tell.
            reads = requests = waited_ns = 0
            self.other_reads, self.others = _Others(), _Others()
        elif reads and not self.whole:
            # How long they waited for the sync is not told, so it may have been long.
            waited_ns = WAITED_NS
        self.was_probed = probed is not None
        self.noted, self.noted_ns = self.reads, self.waited_ns
        self.recent.append((reads, requests, waited_ns))
        return requests


def are_users(seconds: Collection[Count]) -> bool:
    """Whether so many reads and requests, by second, are of somebody who waits for them."""
    requests = sum(each[1] for each in seconds)
    steady = sum(each[1] > 0 for each in seconds) >= STEADY_S
    return (requests >= BUSY_REQUESTS and steady) or requests >= MANY or are_readers(seconds)


def are_readers(seconds: Collection[Count]) -> bool:
    """Whether so many reads are, which no filesystem sends by itself."""
    reads, waited_ns = (sum(each[n] for each in seconds) for n in (0, 2))
    return reads >= BUSY_REQUESTS or waited_ns >= WAITED_NS
