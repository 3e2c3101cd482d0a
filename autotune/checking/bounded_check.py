"""A check of ours within bounds: md never goes further than it is let, and says how far it has
come.

The facts that this rests on (md_do_sync, max_sync_store, sync_completed_show in drivers/md/md.c):

- `sync_completed` is moved once all that lies before it was read, and never between. That happens
  half way to `sync_max`, so a near `sync_max` makes it speak often; and at `sync_max`, where the
  check waits. A check that ends there has read each sector before it, and none behind it.
- While a check runs, `sync_max` can be raised but not lowered.
- A check that is interrupted leaves in `sync_min` what `sync_completed` was; one that came to its
  end leaves 0, and `sync_max` at "max". While it runs, `sync_min` stays where it began. Before a
  check really begins, `sync_min` and `sync_completed` are those of an earlier sync.
- What is left of a check may be read before anybody has seen it under way.
- With a member or its write journal less, RAID 5 "completes" a check without reading.
"""

import re
import time
from typing import Self

from autotune.errors import InfeasibleError, RefusalError
from autotune.measure.check import end
from autotune.safety.journal import Journal
from autotune.system import sysfs
from autotune.system.array import Array, lacks_journal
from autotune.system.blockdev import SECTOR
from autotune.system.mdstat import sync_position_kib
from autotune.system.sync import NAMES, how_to_thaw, is_delayed

LEAD_S = 12.0
"""So far ahead it is let: long enough for the disks to run freely, short enough to wait for."""
LEAST_SECTORS = (8 << 20) // SECTOR
FIRST_SECTORS = (32 << 20) // SECTOR
STEP_SECTORS = 8
"""md goes by pages of 4 KiB, and rounds `sync_min` down to them."""
BEYOND = 1 << 60
"""A `sync_max` behind every end, which holds nothing up and is not "max"."""
PLAIN_UNIT_SECTORS = 128
"""What `sync_max` is a multiple of on an array without chunks."""
LOOK_S = 0.25
START_TIMEOUT_S = 30.0
START_LOOK_S = 0.05


def completed(text: str) -> tuple[int, int] | None:
    """The sectors that are done, and all, from the text of `sync_completed`."""
    found = re.fullmatch(r"(\d+) / (\d+)", text.strip())
    return (int(found[1]), int(found[2])) if found else None


def surely_read(before: int, said: int, limit: int) -> int:
    """How far all is read if md says so: nothing is believed that lies behind where it started from
    or beyond where it was let."""
    said -= said % STEP_SECTORS
    return said if before <= said <= limit else before


def next_limit(position: int, ahead: int, unit: int, size: int) -> int | None:
    """The next `sync_max`, a multiple of `unit` beyond a position; None ("max") if what is left is
    the last of it, before which a check has to stop once, so that its end can be told from an
    interruption."""
    last = (size - 1) // unit * unit
    if position >= last:
        return None
    wanted = (position + ahead) // unit * unit
    return min(max(wanted, position // unit * unit + unit), last)


class BoundedCheck:
    """Starts a check at `start` (in sectors, as md counts them: of each member, on RAID 10 of the
    array) and ends it. A context manager; after it, `position`, `complete` and `mismatches` are
    final."""

    def __init__(self, array: Array, journal: Journal, start: int, size: int) -> None:
        """`size`: sectors in all, as far as is known."""
        self._array, self._journal, self._md = array, journal, array.md
        self._unit = array.chunk_bytes // SECTOR or PLAIN_UNIT_SECTORS
        self.start = self.position = start
        self.size = size
        self.complete = self.over = False
        """Whether the whole rest was read; whether the check has ended, however it did."""
        self.mismatches = 0
        """Sectors that differ, of those before its bound."""
        self._limit: int | None = None
        self._bound = ""
        """What was written to `sync_max` last."""
        self._started = self._holding = False
        self._is_anothers = True
        """Whether a check that runs is somebody else's. Until ours is asked for, it is."""
        self._from = ""
        """What md says of where the check that was started here began."""
        self._ahead = FIRST_SECTORS
        self._seen = (0.0, start)
        self._rate = 0.0
        self._looked_s = -LOOK_S

    def __enter__(self) -> Self:
        self._refuse_if_busy()
        names = ("sync_min", "sync_max")
        self._bounds = sysfs.read(self._md / names[0]), sysfs.read(self._md / names[1])
        self._limit = next_limit(self.start, self._ahead, self._unit, self.size)
        self._journal.checking(True, start=self.start)
        store = self._journal.store
        try:
            # A sync_min above the sync_max would be refused.
            store(self._md / "sync_max", "max")
            store(self._md / "sync_min", str(self.start))
            self._from = sysfs.read(self._md / "sync_min")
            limit = self._limit if self._limit is not None else BEYOND // self._unit * self._unit
            self._let_to(str(limit))
            self._start()
            self._wait_for_its_start()
        except InfeasibleError:
            self._end()
            self._refuse_if_busy()
            raise
        except BaseException:
            self._end()
            raise
        return self

    def _refuse_if_busy(self) -> None:
        action = sysfs.read(self._md / "sync_action")
        if action == "frozen":
            raise RefusalError(
                f"The sync of {self._array.device} is frozen; {how_to_thaw(self._md)}."
            )
        if action != "idle":
            what = NAMES.get(action, action)
            raise RefusalError(
                f"A {what} of {self._array.device} has just begun; wait until it has ended."
            )

    def _start(self) -> None:
        action, self._is_anothers = self._md / "sync_action", False
        try:
            self._journal.store(action, "check")
        except InfeasibleError:
            # Unless ours comes late, somebody has started one since it was idle.
            self._is_anothers = not sysfs.is_late(action)
            raise

    def _wait_for_its_start(self) -> None:
        """Until then, what md says may be about an earlier sync."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._under_way():
            if sysfs.read(self._md / "sync_action") != "check" or time.monotonic() > deadline:
                return
            time.sleep(START_LOOK_S)
        time.sleep(START_LOOK_S)
        self._started = True
        self._seen = (time.monotonic(), self.start)

    def _under_way(self) -> bool:
        return self._mdstat_kib() is not None

    def _mdstat_kib(self) -> tuple[int, int] | None:
        mdstat = sysfs.read(self._array.root / "proc/mdstat")
        return sync_position_kib(mdstat, self._array.name)

    @property
    def at_rest(self) -> bool:
        """Whether it waits at its bound, all before that being read."""
        return self._limit is not None and self.position >= self._limit

    def hold(self) -> None:
        """Let it go no further, but to the end from the last place before that."""
        self._holding = True

    def look(self, now_s: float) -> None:
        """See how far it is, and let it go on. To be called often."""
        if now_s - self._looked_s < LOOK_S or self.over:
            return
        self._looked_s = now_s
        if not self._is_ours() or sysfs.read_or(self._md / "sync_action", "") != "check":
            self.over = True
            return
        if not self._started:
            # md was busy for long; from the next look on it is believed.
            self._started = self._under_way()
            return
        said = completed(sysfs.read_or(self._md / "sync_completed", ""))
        if self._has_ended() or is_delayed(self._md):
            # What lies between where ours was ended and where another one began nobody has read.
            self._is_anothers = self.over = self._has_another()
            return
        if said is None:
            return
        self.size = said[1]
        self._take(said[0])
        if not self._holding or self._next_limit(0) is None:
            self._let_go(now_s)

    def _take(self, said: int) -> None:
        limit = self._limit if self._limit is not None else self.size
        if self._is_whole():
            self.position = surely_read(self.position, said, limit)
            self.mismatches = max(self.mismatches, self._count())

    def _let_go(self, now_s: float) -> None:
        since_s, at = self._seen
        if self.position > at:
            self._rate = max((self.position - at) / max(now_s - since_s, LOOK_S), self._rate / 2)
            self._seen = now_s, self.position
        if self._limit is None:
            return
        ahead = max(int(self._rate * LEAD_S), LEAST_SECTORS)
        wanted = self._next_limit(ahead)
        if wanted is None or wanted > self._limit:
            self._let_to("max" if wanted is None else str(wanted))
            self._limit = wanted

    def _let_to(self, bound: str) -> None:
        self._journal.store(self._md / "sync_max", bound)
        self._bound = bound

    def _next_limit(self, ahead: int) -> int | None:
        return next_limit(self.position, ahead, self._unit, self.size)

    def _has_ended(self) -> bool:
        """Whether the check that was started here has, as far as it did not begin at 0. While it
        runs, its bound cannot be lowered."""
        bound = sysfs.read_or(self._md / "sync_max", self._bound)
        if bound.isdecimal() and self._bound.isdecimal() and int(bound) < int(self._bound):
            return True
        return sysfs.read_or(self._md / "sync_min", self._from) != self._from

    def _has_another(self) -> bool:
        """Whether a check goes on that somebody has started from elsewhere."""
        for _ in range(2):
            if sysfs.read_or(self._md / "sync_action", "") != "check":
                return False
            if is_delayed(self._md):
                # Ours has begun long since.
                return True
            if not self._has_ended():
                return False
            # After its end a check shows all until the superblocks are written (status_resync).
            at = self._mdstat_kib()
            if at is None or at[0] >= at[1]:
                return False
            time.sleep(START_LOOK_S)
        return True

    def _is_ours(self) -> bool:
        return self._journal.record.is_same(self._md / "sync_action")

    def _is_whole(self) -> bool:
        """Whether no member or journal is missing: asked after what md says of a check."""
        whole = sysfs.read_or(self._md / "degraded", "") == "0" and not lacks_journal(self._md)
        return self._is_ours() and whole

    def _count(self) -> int:
        text = sysfs.read_or(self._md / "mismatch_cnt", "0")
        return int(text) if text.isdigit() else 0

    def _end(self) -> None:
        freed = sysfs.read_or(self._md / "sync_max", "") == "max"
        self._is_anothers = self._is_anothers or (self._started and self._has_another())
        goes_on = self._is_anothers and sysfs.read_or(self._md / "sync_action", "") != "idle"
        if goes_on and sysfs.read_or(self._md / "sync_max", "") == self._bound:
            # It would wait for ever at our bound. A bound of its own stays.
            self._let_to("max")
        left = end(
            self._array.name, self._md, self._journal, self._bounds, ours=not self._is_anothers
        )
        # Of what was over before it was seen, that alone tells that md has come to its end.
        known = self._started or (self._limit is None and freed)
        if left is None or self._is_anothers or not known or not self._is_whole():
            return
        self.mismatches = max(self.mismatches, self._count())
        self.complete = self._limit is None and left == 0 and self.position > 0
        if self.complete:
            self.position = self.size
        elif not self.over:
            # Where somebody else has ended it, he may have set sync_min, too.
            limit = self._limit if self._limit is not None else self.size
            self.position = surely_read(self.position, left, limit)

    def __exit__(self, *_: object) -> None:
        self._end()
