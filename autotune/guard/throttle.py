"""Holding a sync to a pace by `sync_speed_max`, without waiting for md's averages.

md compares its mean speed of the last 27 to 30 s with `sync_speed_max` and sleeps 500 ms at a time
while that is above (md_do_sync; MD_FACTS: SYNC_MARKS × SYNC_MARK_STEP). So a lowered limit first
stops the sync for as long as the mean takes to fall, a raised one releases a burst of up to 30 s'
worth, and either pattern comes back every 30 s. Only the two ends act at once: at the limit found
the sync runs, at the lowest it sleeps. So the limit is used as a throttle, open or shut, and the
pace is kept by how much has been synced. That also makes the bursts, behind which foreground
requests wait, half as long as those that md makes of a fixed limit, which it lets through second by
second.
"""

from dataclasses import dataclass
from pathlib import Path

from autotune.errors import StoppedError
from autotune.safety.journal import Journal
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sync import FLOOR_KIB, SHUT_KIB

SLEEP_S = 0.5
"""For how long md sleeps before it looks at its limit again."""
CREDIT_S = 1.0
"""How much of the pace may be caught up with, and no more: what the disks could not do is gone."""
DEBT_S = 30.0
"""How much of it may be waited for, and no more: md itself remembers no more than that."""
REOPEN_S = 0.1
SHORT_S, LOOK_S, IDLE_LOOK_S = 0.004, 0.02, 0.25


def files(array: Array) -> list[Path]:
    """Every file that a guard may write to on this array."""
    names = ("sync_speed_min", "sync_speed_max", "sync_io_depth")
    return [path for path in (array.md / name for name in names) if path.exists()]


@dataclass
class _File:
    """One of them: what it read when it was found, and what it must read now."""

    path: Path
    found: str
    now: str


class Throttle:
    """Writes what the journal knows, each value announced there before it is written first."""

    def __init__(self, array: Array, journal: Journal) -> None:
        self.journal = journal
        self._announced: set[tuple[Path, str]] = set()
        originals = journal.record.originals
        self._files = {
            path.name: _File(path, originals[str(path)], originals[str(path)])
            for path in files(array)
        }
        self.floor_kib = min(self._number("sync_speed_min"), FLOOR_KIB)
        self.limit_kib = self._number("sync_speed_max")
        self.is_open = True
        self.held = False
        """Whether it was shut at any time since this was last made False."""
        self._has_held = False
        """Whether it was shut at any time."""
        self._allowed_kib = 0.0
        self._at_s: float | None = None

    def _number(self, name: str) -> int:
        return int(sysfs.value(self._files[name].path))

    def _write(self, name: str, text: str) -> None:
        file = self._files[name]
        if file.now == text:
            return
        self._announce(file, text)
        self.journal.store(file.path, text)
        file.now = text

    def _announce(self, file: _File, text: str) -> None:
        if (file.path, text) not in self._announced:
            self.journal.writing(file.path, text)
            self._announced.add((file.path, text))

    def check(self) -> None:
        """Raise StoppedError if somebody else has set a file: it is theirs from now on."""
        for file in self._files.values():
            if not self.journal.record.is_same(file.path):
                raise StoppedError(f"Stopped: the array of {file.path} was stopped.")
            text = sysfs.original(file.path)
            if text != file.now:
                raise StoppedError(
                    f"Stopped: somebody else set {file.path.name} to {text}, which is left as it "
                    "is."
                )
        if self._has_held and self._number("sync_speed_min") > FLOOR_KIB:
            # It follows the sysctl, which was raised for all arrays. Nothing is held until it is
            # lowered here, for which the journal's disk has to answer.
            self._open()
            self._lower()

    def _lower(self) -> None:
        """What is below `sync_speed_min` md never holds back."""
        if self._number("sync_speed_min") > FLOOR_KIB:
            self._write("sync_speed_min", str(FLOOR_KIB))

    def open(self) -> None:
        """Let the sync run as it would without a guard, but for a lower sync_speed_min once it was
        held."""
        if not self.is_open:
            self.check()
            self._open()
        self._at_s = None

    def _open(self) -> None:
        self._write("sync_speed_max", self._files["sync_speed_max"].found)
        self.is_open = True

    def shut(self) -> None:
        """Let the sync sleep from its next 128 KiB on."""
        self.held = True
        if self.is_open:
            self.check()
            # Nothing that follows, to open it again above all, must wait for the journal's disk.
            file = self._files["sync_speed_max"]
            self._announce(file, file.found)
            self._announce_depths()
            self._has_held = True
            self._lower()
            self._write(file.path.name, str(SHUT_KIB))
            self.is_open = False

    def keep(self, pace_kib: float, done_kib: float, now_s: float) -> None:
        """Open or shut so that the sync, which has done `done_kib` of each member by now, goes at
        a pace. To be called often."""
        if self._at_s is None:
            self._allowed_kib = done_kib
        else:
            self._allowed_kib += pace_kib * (now_s - self._at_s)
        self._at_s = now_s
        self._allowed_kib = min(self._allowed_kib, done_kib + pace_kib * CREDIT_S)
        self._allowed_kib = max(self._allowed_kib, done_kib - pace_kib * DEBT_S)
        if done_kib >= self._allowed_kib:
            self.shut()
        elif not self.is_open and self._allowed_kib - done_kib >= pace_kib * REOPEN_S:
            self.check()
            self._open()

    def pause_s(self, done_kib: float, free_kib: float) -> float:
        """How long it is safe to look away while a pace is kept, for disks that sync at
        `free_kib`."""
        if not self.is_open:
            return LOOK_S
        return max(SHORT_S, min(LOOK_S, (self._allowed_kib - done_kib) / max(free_kib, 1.0)))

    @property
    def depth(self) -> int | None:
        """`sync_io_depth`, where this kernel has it (6.16)."""
        return self._number("sync_io_depth") if "sync_io_depth" in self._files else None

    def _announce_depths(self) -> None:
        """All that `halve_depth` and `restore_depth` may write."""
        if (depth := self.depth) is not None:
            file = self._files["sync_io_depth"]
            self._announce(file, file.found)
            while depth > 1:
                depth //= 2
                self._announce(file, str(depth))

    def halve_depth(self) -> None:
        """Let a sync keep half as many requests in flight, down to one."""
        if self.depth is not None and self.depth > 1:
            self.check()
            self._write("sync_io_depth", str(self.depth // 2))

    def restore_depth(self) -> None:
        """Take that back."""
        file = self._files.get("sync_io_depth")
        if file is not None and file.now != file.found:
            self.check()
            self._write("sync_io_depth", file.found)
