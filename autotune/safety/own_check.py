"""Ending a check of ours whose run is over. Light."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.outcome import Outcome, because
from autotune.safety.record import Record
from autotune.system import sysfs
from autotune.system.process import stat_words
from autotune.system.sync import is_checking

IDLE_TIMEOUT_S = 30.0
AGAIN_S, LOOK_S = 0.5, 0.02

LATE_S = 180.0
"""md begins a check within seconds after it was told to. Where a disk hangs it does so at any time,
but by then a restore has announced it once more."""
PROC = Path("/proc")
_COMM, _START, _PARENT, _KTHREADD = 15, 19, 1, "2"
"""A name's length before Linux 5.17, and where the start and the parent are in /proc/PID/stat
(proc_pid_stat(5)), after the name; the parent of the kernel's threads."""
ROUNDED = 8
"""md rounds `sync_min` down to so many sectors."""


def is_anothers_check(md: Path, record: Record) -> bool:
    """Whether the check that runs is surely not the one that a record speaks of: somebody has ended
    that, which leaves where it got to in `sync_min`, and started another one; or it was over, and
    another one began later."""
    if sysfs.read_or(md / "sync_action", "") != "check":
        return False
    found, start = sysfs.read_or(md / "sync_min", ""), record.check_start
    # Ours goes on at 0 after its end.
    if (
        start is not None
        and found.isdecimal()
        and int(found) not in (0, start // ROUNDED * ROUNDED)
    ):
        return True
    if record.check_begun_s is None:
        return False
    began_s = _thread_began_s(md.parent.name)
    return began_s is not None and began_s > record.check_begun_s + LATE_S


def _thread_began_s(name: str) -> float | None:
    """When md began the sync of an array, on the clock that goes on while the machine sleeps; None
    if its thread is not seen from here, as in a container."""
    thread, found = f"{name}_resync", []
    for process in PROC.glob("[0-9]*"):
        if sysfs.read_or(process / "comm", "") in (thread, thread[:_COMM]):
            words = stat_words(process)
            if len(words) > _START and words[_PARENT] == _KTHREADD:
                found.append(int(words[_START]) / os.sysconf("SC_CLK_TCK"))
    # Of a long name, md's main thread may be called the same, and that is older.
    return max(found, default=None)


def end_check(md: Path, store: Callable[[Path, str], None]) -> bool:
    """End a check of ours, by the array's folder in sysfs; whether that was done in time.

    md takes an "idle" that comes before the check has begun for nothing (action_store), and a busy
    array begins seconds after it was told to. Once it has, it is over when the store returns, so a
    check that runs then is still that one.
    """
    action, deadline = md / "sync_action", time.monotonic() + IDLE_TIMEOUT_S
    while True:
        # A store that has not come through yet begins a check, too: the next one waits for it.
        if sysfs.read(action) == "check" or sysfs.is_late(action):
            store(action, "idle")
        again = time.monotonic() + AGAIN_S
        while is_checking(md):
            if (now := time.monotonic()) > deadline:
                return False
            if now > again:
                break
            time.sleep(LOOK_S)
        else:
            return True


def stop_check(block: Path, outcome: Outcome, record: Record) -> None:
    """End the check of the array with this folder that a record speaks of, and take its bound away.
    Of one that somebody else has started since only the bound goes: it may be ours."""
    action = block / "md/sync_action"
    if not action.exists():
        return
    try:
        if is_anothers_check(action.parent, record):
            _leave(block, outcome)
            return
        # Should that fail, it is still to be ended.
        outcome.checking = sysfs.read(action) == "check" or sysfs.is_late(action)
        outcome.checking = not end_check(action.parent, sysfs.write)
        if outcome.checking:
            outcome.failed.append(f"the check of {block.name} does not end")
            _unbound(block)
            return
        if sysfs.read(action) == "idle":
            # A check may have been bounded, and a sync_min above the sync_max would be refused.
            _unbound(block)
        outcome.restored.append(str(action))
    except (AutotuneError, OSError) as error:
        outcome.failed.append(because(action, error))
        if outcome.checking:
            # A disk hangs. The recovery that follows must not be bounded; this waits for nothing.
            with contextlib.suppress(AutotuneError):
                _unbound(block)


def _leave(block: Path, outcome: Outcome) -> None:
    text = f"a check of /dev/{block.name} that autotune did not start goes on"
    bound = sysfs.read_or(block / "md/sync_max", "max")
    if bound != "max":
        _unbound(block)
        text += f", to the end: its sync_max, {bound}, may have been left by autotune"
    outcome.foreign.append(text)


def _unbound(block: Path) -> None:
    if (bound := block / "md/sync_max").exists():
        sysfs.write(bound, "max")
