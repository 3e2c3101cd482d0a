"""The foreground of an array, and of those on the same disks, which a sync slows down as well:
whether there is any, and how slow its requests are."""

import contextlib
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from autotune.measure import accounting
from autotune.measure.accounting import Batch, Percentile
from autotune.measure.array_users import BUSY_REQUESTS, Count, Users, are_readers, are_users
from autotune.stats.histogram import Histogram, at_rank, slower, total
from autotune.system.array import Array
from autotune.system.neighbours import sharing

if TYPE_CHECKING:
    from autotune.measure.foreground_probe import ForegroundProbe

ACCOUNTING, PROBE = "accounting", "probe"
SECOND_S = 1.0
STAYS_S = 15.0
"""Whoever reads is there for so long, be it without a request, and whoever writes if he asks for
something still: some ask in bursts."""
MOST_STAYS_S = 45.0
"""Whoever reads, and comes back within so long after the sync was let go, stays twice as long as
before or as he was gone, up to this: else the first reads of each burst would meet a sync at full
speed. Not who writes: a filesystem that nobody uses does so each 30 s, too."""
WINDOW_S = 30
"""What a p99 is about."""
DOUBT_S, DOUBT_RATIO = 15, 3.0
"""The counters do not do if over so long the bounds of the p99 are further apart than this, and the
ceiling, if there is one, is between them."""
CLOCK_S, CLOCK_RATIO = 8, 1.5
"""Nor if what requests took by the kernel's clock differs by more than this from what was seen in
flight by ours: what is in flight on average is the requests that come times what each takes
(Little's law). Some kernels' clocks stand still between interrupts (seen in user-mode Linux)."""
MEETS_EACH = 10
"""After so many seconds arrays on the same disks are looked for again: some are assembled while a
sync goes on."""
PROBE_S = 60
"""For so long the counters are not asked again."""


@dataclass(frozen=True)
class Second:
    """About a second of the foreground: its requests, and of those that were `sampled` (its own,
    or the probe's) how many were too slow. All that is known of these is in `batches` or, by the
    probe, in `histogram`."""

    requests: int | None
    """None where the kernel does not count."""
    sampled: int
    slow: float
    batches: Sequence[Batch] = ()
    histogram: Histogram = field(default_factory=dict)


def p99(seconds: Iterable[Second]) -> Percentile | None:
    """The p99 of all that was sampled in these seconds, by the probe alone if that was there in any
    of them; None without any."""
    seconds = list(seconds)
    histogram = total([second.histogram for second in seconds])
    if not histogram:
        return accounting.percentile([b for second in seconds for b in second.batches], 99)
    exact = float(at_rank(sorted(histogram.items()), 0.99 * sum(histogram.values())))
    return Percentile(exact, exact, exact)


class Foreground:
    """Call `look` often. A context manager, since a probe may run."""

    def __init__(self, array: Array, ceiling_ns: float, probe_iops: int | None = None) -> None:
        """`probe_iops`: by a probe of such a rate alone, and though nobody else is there."""
        self._array = array
        self._ceiling_ns = ceiling_ns
        self._probe_iops = probe_iops
        self._arrays = [array]
        self._users = [Users(array, accounting.whole(array))]
        self._meet()
        self._seconds_over = 0
        self.counted = self._are_counted()
        """Whether the kernel counts the requests of all these arrays."""
        self._stack = contextlib.ExitStack()
        self._probe: ForegroundProbe | None = None
        self._probe_until_s = 0.0
        self._since_s: float | None = None
        self._seconds: deque[Second] = deque(maxlen=WINDOW_S)
        self._clocks: deque[tuple[float, float]] = deque(maxlen=WINDOW_S)
        """In ns: what requests took by the kernel's clock, and what was seen in flight by ours."""
        self._clocks_compared = False
        self._in_flight_ns = 0.0
        self._looked_s: float | None = None
        self._last_users_s = -math.inf
        """When somebody was surely there."""
        self._last_readers_s = -math.inf
        self._stays_s = STAYS_S
        """For how long readers stay."""
        self._was_busy = False
        self._let_go_s = -math.inf
        """When nobody was left."""

    @property
    def source(self) -> str:
        """Where the latencies come from."""
        return PROBE if self._probe else ACCOUNTING

    @property
    def busy(self) -> bool:
        """Whether there is anybody to protect; yes where that cannot be known."""
        seconds = self._each_second()
        if not self.counted or are_users(seconds):
            return True
        now_s, asks = self._looked_s or 0.0, sum(n for _, n, _ in seconds) >= BUSY_REQUESTS
        lately = now_s - self._last_users_s < STAYS_S
        return (asks and lately) or now_s - self._last_readers_s < self._stays_s

    @property
    def seen(self) -> bool:
        """Whether somebody was surely there since this looks."""
        return self._last_users_s > -math.inf

    @property
    def _whole(self) -> bool:
        """Whether the counters say all of what the requests took. A few of an array whose counters
        do not, such as the one for /boot, are not worth a probe."""
        return (
            self._probe_iops is None
            and self.counted
            and all(u.whole or not are_users(u.recent) for u in self._users)
        )

    def _meet(self) -> None:
        """Take up the arrays that share disks now, and let go of those that do not any more."""
        beside = sharing(self._array)
        self._arrays = [self._array, *beside]
        names = {array.name for array in self._arrays}
        self._users = [users for users in self._users if users.array.name in names]
        known = {users.array.name for users in self._users}
        for other in beside:
            if other.name not in known:
                new = Users(other, accounting.whole(other))
                new.recent.extend([(0, 0, 0)] * len(self._users[0].recent))
                self._users.append(new)

    def _are_counted(self) -> bool:
        return all(map(accounting.counted, self._arrays))

    def look(self, now_s: float) -> Second | None:
        """Look at the counters; what the last second showed, when it is over."""
        in_flight = self._look_at_each(now_s)
        if self._looked_s is not None:
            self._in_flight_ns += in_flight * (now_s - self._looked_s) * 1e9
        self._looked_s = now_s
        if self._since_s is None:
            self._since_s = now_s
        if self._probe is not None:
            read = self._probe.look()
            if read is None:
                return None
            requests = self._count(read.requests)
            late = slower(read.reads, self._ceiling_ns)
            known = requests if self.counted else None
            second = Second(known, read.requests, late, histogram=read.reads)
        elif now_s - self._since_s < SECOND_S:
            return None
        else:
            requests = self._count()
            batches = tuple(self._batches) if self._whole else ()
            slow = accounting.slow(batches, self._ceiling_ns)
            second = Second(requests, accounting.total(batches), slow, batches)
        self._clocks.append((sum(b.total_ns for b in self._batches), self._in_flight_ns))
        for users in self._users:
            users.batches = []
        self._seconds_over += 1
        if self._seconds_over % MEETS_EACH == 0:
            self._meet()
        self._since_s, self._in_flight_ns = now_s, 0.0
        self._seconds.append(second)
        self.counted = self._are_counted()
        self._choose(now_s)
        if self._was_busy and not self.busy:
            self._let_go_s = now_s
        self._was_busy = self.busy
        return second

    @property
    def _batches(self) -> list[Batch]:
        return [batch for users in self._users if users.whole for batch in users.batches]

    def _look_at_each(self, now_s: float) -> int:
        """Return how many requests are in flight, of those whose time is counted. OSError if the
        array is gone."""
        in_flight = 0
        for users in list(self._users):
            try:
                in_flight += users.look(now_s) * users.whole
            except (OSError, ValueError, IndexError):
                if users.array is self._array:
                    raise
                # One beside it was stopped.
                self._users.remove(users)
        return in_flight

    def _count(self, probed: int | None = None) -> int:
        """Note the requests of a second that is over, less those of a probe; return how many."""
        requests = sum(
            users.second_over(probed if users.array is self._array else None)
            for users in self._users
        )
        seconds = self._each_second()
        if self._looked_s is not None and are_users(seconds):
            self._last_users_s = self._looked_s
        if self._looked_s is not None and are_readers(seconds):
            gone_s = self._looked_s - self._let_go_s
            if not self._was_busy:
                longer_s = min(2 * max(gone_s, self._stays_s), MOST_STAYS_S)
                self._stays_s = longer_s if gone_s <= MOST_STAYS_S else STAYS_S
            self._last_readers_s = self._looked_s
        return requests

    def _each_second(self) -> list[Count]:
        """What there was of all arrays, by second."""
        each_second = zip(*(users.recent for users in self._users), strict=True)
        return [
            (sum(r for r, _, _ in second), sum(n for _, n, _ in second), sum(w for *_, w in second))
            for second in each_second
        ]

    def forget(self) -> None:
        """Begin anew: what was seen until now was under other conditions."""
        self._seconds.clear()
        self._clocks.clear()

    def _choose(self, now_s: float) -> None:
        """The counters if they will do, else the probe; nothing if nobody is there."""
        wanted = (self.busy or self._probe_iops is not None) and (
            not self._whole
            or now_s < self._probe_until_s
            or self._clocks_differ()
            or self._doubtful()
        )
        if wanted and self._probe is None:
            # pydantic comes with it, which a guard without a probe does not need.
            from autotune.measure.foreground_probe import ForegroundProbe  # noqa: PLC0415

            self._probe = self._stack.enter_context(ForegroundProbe(self._array, self._probe_iops))
            self._probe_until_s = now_s + PROBE_S
            self._seconds.clear()
        elif not wanted and self._probe is not None:
            self._stack.close()
            self._probe = None
            self._seconds.clear()

    def _clocks_differ(self) -> bool:
        if len(self._clocks) < CLOCK_S:
            return False
        self._clocks_compared = True
        kernels, ours = (sum(part) for part in zip(*self._clocks, strict=True))
        return not 1 / CLOCK_RATIO < (kernels + 1) / (ours + 1) < CLOCK_RATIO

    def _doubtful(self) -> bool:
        """Whether requests that ended together leave open too much of how slow each was."""
        if self._probe is not None or len(self._seconds) < DOUBT_S:
            return False
        latest = p99(list(self._seconds)[-DOUBT_S:])
        if latest is None:
            return False
        # Without a ceiling it is the p99 itself that is told.
        between = latest.at_least < self._ceiling_ns < latest.at_most
        if math.isfinite(self._ceiling_ns) and not between:
            return False
        return latest.at_most > DOUBT_RATIO * latest.at_least

    def p99(self) -> tuple[Percentile | None, int]:
        """The p99 of the last half minute and how many requests it is of; none by a clock of the
        kernel that was not compared with ours yet."""
        known = self._probe is not None or self._clocks_compared
        return p99(self._seconds) if known else None, sum(s.sampled for s in self._seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
