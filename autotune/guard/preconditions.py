"""What has to hold before an array is guarded."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.preflight import checks, syncs
from autotune.safety.deferred_restore import put_back
from autotune.safety.paths import clear_if_torn
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sync import SHUT_KIB


def refusal(array: Array) -> str | None:
    """Why this array cannot be guarded: a sentence, or None."""
    findings = (
        checks.unknown_driver(array),
        checks.not_redundant(array),
        checks.external_metadata(array),
        checks.clustered(array),
        checks.no_uuid(array),
        syncs.speeds_crossed(array),
        checks.program_missing(),
        checks.not_root(array),
    )
    return next((text for text in findings if text), None)


def no_room(array: Array) -> str | None:
    """Likewise, of an array that is held: what another guard has set is no limit."""
    limit = int(sysfs.value(array.md / "sync_speed_max"))
    if limit > SHUT_KIB:
        return None
    return (
        f"The sync_speed_max of {array.device} is {limit} KiB/s already, and a guard only ever "
        f"lowers it; raise it with `{syncs.to_usual(array, 'sync_speed_max')}`."
    )


def put_back_leftovers(array: Array, path: Path, notice: Callable[[str], None]) -> bool:
    """Nobody else may come to restore what was killed together with its guardian before the sync is
    over, and a guard's shut throttle would hold it to its end. What cannot be put back is refused
    when the journal is opened. Return whether there is such."""
    try:
        if not path.exists():
            return False
        with contextlib.suppress(AutotuneError, FileNotFoundError):
            if not clear_if_torn(path):
                put_back(path, array.root)
        if path.exists():
            return True
    except OSError:
        # Whoever opens a journal there says what is wrong.
        return True
    notice(f"What an earlier run left on {array.device} is put back.")
    wake_udev(array, notice)
    return False


def wake_udev(array: Array, notice: Callable[[str], None]) -> None:
    """A journal that is gone now has kept udev from what is persisted: at an assembly, or for a
    disk that was added meanwhile."""
    rules = array.root / "etc/udev/rules.d"
    if not any(rules.glob(f"*-{array.uuid}.rules")):
        return
    from autotune.deploy.udevd import wake  # noqa: PLC0415  (too heavy for a guard)

    wake([array.uuid], notice)
