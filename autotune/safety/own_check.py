"""Ending a check of ours whose run is over. Light, as the guardian is."""

import contextlib
import time
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.outcome import Outcome, because
from autotune.system import sysfs
from autotune.system.sync import is_checking

IDLE_TIMEOUT_S = 30.0


def stop_check(block: Path, outcome: Outcome) -> None:
    """End the check of the array with this folder, and take its bound away."""
    action = block / "md/sync_action"
    if not action.exists():
        return
    try:
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


def _unbound(block: Path) -> None:
    if (bound := block / "md/sync_max").exists():
        sysfs.write(bound, "max")
