"""Ending a check of ours whose run is over. Light, as the guardian is."""

import contextlib
import time
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.outcome import Outcome, because
from autotune.system import sysfs
from autotune.system.sync import is_checking

IDLE_TIMEOUT_S = 30.0


ROUNDED = 8
"""md rounds `sync_min` down to so many sectors."""


def is_anothers(md: Path, start: int | None) -> bool:
    """Whether the check that runs is surely none that began at `start`, in sectors: somebody has
    ended ours, which leaves where it got to in `sync_min`, and started another one. Ours goes on at
    0 after its end."""
    if start is None or sysfs.read_or(md / "sync_action", "") != "check":
        return False
    found = sysfs.read_or(md / "sync_min", "")
    return found.isdecimal() and int(found) not in (0, start // ROUNDED * ROUNDED)


def stop_check(block: Path, outcome: Outcome, start: int | None = None) -> None:
    """End the check of the array with this folder, which began at `start`, and take its bound away.
    Of one that somebody else has started since only the bound goes: it may be ours."""
    action = block / "md/sync_action"
    if not action.exists():
        return
    try:
        if is_anothers(action.parent, start):
            _leave(block, outcome)
            return
        if sysfs.read(action) == "check":
            outcome.checking = True
            sysfs.write(action, "idle")
        deadline = time.monotonic() + IDLE_TIMEOUT_S
        while is_checking(action.parent) and time.monotonic() < deadline:
            time.sleep(0.05)
        outcome.checking = is_checking(action.parent)
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
