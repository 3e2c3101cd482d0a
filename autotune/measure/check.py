"""A redundancy check as the stand-in for a resync: it reads as one and destroys nothing.

It lacks the writes of a rebuild, so it underestimates one (MD_FACTS §4). An interrupted check
leaves `sync_min` advanced, which would make the distribution's next check a partial one.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from autotune.errors import InfeasibleError, MeasurementError, StoppedError
from autotune.safety.journal import Journal
from autotune.safety.own_check import IDLE_TIMEOUT_S, end_check
from autotune.system import sysfs
from autotune.system.mdstat import sync_position_kib
from autotune.system.sync import how_to_thaw, is_delayed

SHOWS_AFTER_S = 1.0
NEAR_STRIDES = 5
"""How many times the most that was checked between two looks is near the end."""


def end(
    name: str, md: Path, journal: Journal, bounds: tuple[str, str], ours: bool = True
) -> int | None:
    """End a check of ours, put `sync_min` and `sync_max` back to `bounds`, and note in the journal
    that it has ended. Return what md has left in `sync_min`, in sectors; None if the array is gone,
    or something else goes on by now. `ours`: whether a check that runs is; another one goes on.

    Raise MeasurementError if the check does not end.
    """
    action = md / "sync_action"
    if not journal.record.is_same(action):
        # The array was stopped, and its check with it. Another one may have the name.
        journal.checking(False)
        return None
    if ours:
        try:
            ended = end_check(md, journal.store)
        except InfeasibleError:
            # A disk hangs. The recovery that follows must not be bounded.
            journal.store(md / "sync_max", "max")
            raise
        if not ended:
            raise MeasurementError(
                f"The check on {name} did not stop within {IDLE_TIMEOUT_S:.0f} s."
            )
    idle = sysfs.read(action) == "idle"
    left = int(sysfs.read(md / "sync_min")) if idle else None
    if idle:
        try:
            # A sync_min above the sync_max would be refused.
            journal.store(md / "sync_max", "max")
            journal.store(md / "sync_min", bounds[0])
            if bounds[1] != "max":
                journal.store(md / "sync_max", bounds[1])
        except InfeasibleError:
            # After a member fails, the recovery may begin at any moment, and then md refuses them.
            idle = sysfs.read(action) == "idle"
            if idle:
                raise
    journal.checking(False, moved=not idle)
    return left


class Check:
    """A running check of an array, from its start; as a context manager it ends with it."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        watch: Callable[[], None] = lambda: None,
        root: Path = Path("/"),
        start_kib: int = 0,
    ) -> None:
        """`watch` knows better why a check was interrupted, and raises that. `start_kib`: where it
        begins, in what /proc/mdstat counts; one that comes to the end goes on from 0."""
        self._watch = watch
        self._name = name
        self._md = root / "sys/block" / name / "md"
        self._mdstat = root / "proc/mdstat"
        self._journal = journal
        self._ours = False
        self._done_before_kib = 0
        self._start_kib = self._latest_kib = start_kib
        self._size_kib = 0
        self._stride_kib = 0
        self.mismatches_before = 0

    def __enter__(self) -> Self:
        self._refuse_if_frozen()
        action = sysfs.read(self._md / "sync_action")
        if action != "idle":
            raise MeasurementError(
                f"A {action} runs on {self._name} that autotune did not start; "
                "wait until it has ended."
            )
        self.mismatches_before = int(sysfs.read(self._md / "mismatch_cnt"))
        self._original_min = sysfs.read(self._md / "sync_min")
        self._original_max = sysfs.read(self._md / "sync_max")
        self._journal.checking(True, start=self._start_kib * 2)
        store = self._journal.store
        try:
            store(self._md / "sync_min", str(self._start_kib * 2))
            store(self._md / "sync_max", "max")
            store(self._md / "sync_action", "check")
            self._ours = True
        except BaseException:
            # It may come through later.
            self._ours = self._ours or sysfs.is_late(self._md / "sync_action")
            self._stop()
            raise
        return self

    def done_bytes(self) -> int:
        """How much has been checked since the start, as /proc/mdstat counts it: of each member, on
        RAID 10 of the array. A check that has reached the end is started again from the beginning.

        Raise StoppedError if somebody else has ended it, or has started another one since.
        """
        position = sync_position_kib(sysfs.read(self._mdstat), self._name)
        if self._waits_another() if position is None else self._is_another(position[0]):
            self._ours = False
            # A recovery or resync is another one too, which the watch says better.
            time.sleep(SHOWS_AFTER_S)
            self._watch()
            raise StoppedError(
                f"Stopped: somebody else ended the check of {self._name} and started another one, "
                "which goes first."
            )
        if position is None:
            self._refuse_if_frozen()
            if sysfs.read(self._md / "sync_action") == "idle":
                size_kib = self._size_kib or int(sysfs.read(self._md / "component_size"))
                if self._is_interrupted(size_kib):
                    # A member that fails does that too, which shows in a moment.
                    time.sleep(SHOWS_AFTER_S)
                    self._watch()
                    raise StoppedError(
                        f"Stopped: somebody else ended the check of {self._name}, so it is "
                        "not started again."
                    )
                self._done_before_kib += size_kib
                self._latest_kib = 0
                self._journal.checking(True, start=self._start_kib * 2)
                self._journal.store(self._md / "sync_action", "check")
        elif position[0] < position[1]:
            # All of it is shown until the superblocks are written (`getting_on_kib`).
            self._size_kib = position[1]
            self._stride_kib = max(self._stride_kib, position[0] - self._latest_kib)
            self._latest_kib = max(position[0], self._latest_kib)
        return (self._done_before_kib + self._latest_kib) * 1024

    def _refuse_if_frozen(self) -> None:
        action = self._md / "sync_action"
        if sysfs.read(action) == "frozen":
            # For a moment it is so too where the array is made read-only.
            time.sleep(SHOWS_AFTER_S)
            self._watch()
            if sysfs.read(action) == "frozen":
                raise StoppedError(
                    f"Stopped: the sync of {self._name} is frozen; {how_to_thaw(action.parent)}."
                )

    def _is_another(self, done_kib: int) -> bool:
        """Whether the check that runs is not the one that was started here. One that was
        interrupted leaves sync_min where it got to; in its first seconds, where it began."""
        back_kib = self._latest_kib - done_kib
        moved = int(sysfs.read(self._md / "sync_min")) > self._start_kib * 2
        return moved or back_kib > NEAR_STRIDES * self._stride_kib > 0

    def _waits_another(self) -> bool:
        """Whether a check that somebody else has started waits for that of an array beside."""
        if not is_delayed(self._md):
            return False
        # One of ours that came to its end is started again, and may wait, too.
        moved = int(sysfs.read(self._md / "sync_min")) > self._start_kib * 2
        return moved or self._latest_kib > self._start_kib

    def _is_interrupted(self, size_kib: int) -> bool:
        """Whether a check that is over was nowhere near its end when it was last seen. One that
        was interrupted leaves sync_min where it got to, but only to some seconds (md_do_sync)."""
        if int(sysfs.read(self._md / "sync_min")) > self._start_kib * 2:
            return True
        left_kib = size_kib - self._latest_kib
        return self._stride_kib > 0 and left_kib > max(
            NEAR_STRIDES * self._stride_kib, size_kib // 10
        )

    def _stop(self) -> None:
        bounds = self._original_min, self._original_max
        ours = self._ours and not self._waits_another()
        end(self._name, self._md, self._journal, bounds, ours)

    def __exit__(self, *_: object) -> None:
        self._stop()
