"""The sync that is under way on an array: what it is, how far it is. Changes nothing."""

import time
from collections.abc import Callable

from autotune.errors import RefusalError
from autotune.knobs.sync_speed import TOP
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.mdstat import getting_on_kib, sync_position_kib
from autotune.system.sync import CHECKS, REBUILDS

GUARDED = (*REBUILDS, *CHECKS)
WAIT_S = 1.0
"""Between two looks whether a sync runs, or can be guarded by now."""


def under_way(array: Array) -> str:
    """The array's sync as md names it now, or "".

    Raise RefusalError if the array was stopped, be it that another one has its name by now.
    """
    there = sysfs.identity(array.md.parent)
    if not array.md.is_dir() or there.split()[:1] != array.identity.split()[:1]:
        raise RefusalError(f"{array.device} was stopped.")
    action = sysfs.read_or(array.md / "sync_action", "idle")
    return action if action in GUARDED else ""


def running(array: Array) -> bool:
    """Whether the sync that is under way gets on: one that waits for that of another array on the
    same disks (DELAYED in /proc/mdstat) has no position. RefusalError as `under_way`."""
    mdstat = sysfs.read(array.root / "proc/mdstat")
    return under_way(array) != "" and sync_position_kib(mdstat, array.name) is not None


def wait_for_one(array: Array, pause: Callable[[float], bool], for_the_next: bool) -> bool:
    """Wait until a sync runs: the one that is under way, or else the next. False if none is under
    way and the next is not wanted, or if `pause`, which waits so many seconds, says that the wait
    is to end."""
    while not running(array):
        if not (for_the_next or under_way(array)) or not pause(WAIT_S):
            return False
    return True


SHORTEST_S = 0.1
"""A sync gets on in bursts, so less time than this says nothing of its speed."""
BURST = 4
"""How many times as fast as md's own mean it may be meanwhile."""


class Progress:
    """How much of each member was synced since this was made, as far as it was seen, and how far
    it is. What a bitmap lets a resync or a recovery skip is not synced: md shows its place beyond
    it, but counts it in no speed (md_do_sync)."""

    def __init__(self, array: Array, clock: Callable[[], float] = time.monotonic) -> None:
        self._array, self._clock = array, clock
        self._position_kib: int | None = None
        self._at_s = clock()
        # On RAID 10 all but a recovery counts by the array.
        self._fastest_kib_s = TOP[array.media] * (
            array.raid_disks if array.level == "raid10" else 1
        )
        self.done_kib = 0
        self.size_kib = 0
        self.share = 0.0
        self.getting_on = False
        """Whether it had a position at the last look: one that waits for another array's has none,
        nor has any at its very end."""

    def look(self) -> int:
        """KiB until now, as /proc/mdstat counts them."""
        position = getting_on_kib(sysfs.read(self._array.root / "proc/mdstat"), self._array.name)
        self.getting_on = position is not None
        if position is None:
            self._position_kib = None
            return self.done_kib
        now_s = self._clock()
        step_kib = position[0] - (self._position_kib or 0)
        passed_s = max(now_s - self._at_s, SHORTEST_S)
        if self._position_kib is not None and step_kib > 0 and self._is_synced(step_kib / passed_s):
            self.done_kib += step_kib
        self._at_s = now_s
        self._position_kib, self.size_kib = position
        self.share = position[0] / max(position[1], 1)
        return self.done_kib

    def _is_synced(self, kib_s: float) -> bool:
        """Whether disks can have been so fast. Those that a virtual machine calls hard disks may be
        faster than any: then md's mean, which counts no skipped part, says so."""
        if kib_s <= self._fastest_kib_s:
            return True
        mean = sysfs.read_or(self._array.md / "sync_speed", "")
        return mean.isdigit() and kib_s <= BURST * int(mean)


class SyncEnd:
    """Whether a sync that is over has come to its end; md says "idle" in either case."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self._before: set[str] | None = None

    def look(self) -> None:
        """See who is in sync while a recovery gets on. To be called often."""
        if self._array.sync_action != "recover":
            return
        members = self._in_sync()
        mdstat = sysfs.read(self._array.root / "proc/mdstat")
        # What has been recovered is taken in before the recovery is over, with all of it done.
        getting_on = getting_on_kib(mdstat, self._array.name) is not None
        if getting_on and under_way(self._array) == "recover":
            self._before = members

    @property
    def interrupted(self) -> bool:
        md = self._array.md
        if self._array.sync_action == "recover":
            if self._before is None:
                return sysfs.read_or(md / "degraded", "0") != "0"
            return self._in_sync() <= self._before
        if self._array.sync_action == "resync":
            return sysfs.read_or(md / "resync_start", "none") != "none"
        # Where it got to; of one that was stopped in its first seconds md may not know.
        return sysfs.read_or(md / "sync_min", "0") != "0"

    def _in_sync(self) -> set[str]:
        states = self._array.md.glob("dev-*/state")
        return {path.parent.name for path in states if "in_sync" in sysfs.read_or(path, "")}
