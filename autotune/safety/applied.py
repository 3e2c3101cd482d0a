"""What is applied to an array to stay until the next reboot: recorded, and looked up."""

import contextlib
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.problem.profile import Profile, save_profile
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_path, applied_profile_path
from autotune.safety.record import Record
from autotune.system.array import Array


def keep_applied(profile: Profile, array: Array, journal: Journal, state_dir: Path) -> None:
    """Leave the profile's values in force until the next reboot or `autotune restore`. Raise
    AutotuneError, the journal still being open, if that cannot be recorded."""
    save_profile(profile, applied_profile_path(state_dir, array.uuid))
    journal.keep(applied_path(state_dir, array.uuid))


def hand_down(path: Path) -> None:
    """Before a record of what was applied is undone: where a later one, of an array on the same
    disks, found its values, give that the originals. It would bring back those values else. Raise
    AutotuneError if the record cannot be read."""
    undone = Journal.load(path).record
    for other in path.parent.glob("*.jsonl"):
        if other != path:
            # What cannot be read or is in use keeps nobody from going back.
            with contextlib.suppress(AutotuneError, OSError):
                _hand_down(undone, path, other)


def _hand_down(undone: Record, path: Path, other: Path) -> None:
    record = Journal.load(other).record
    later = other.stat().st_mtime_ns >= path.stat().st_mtime_ns
    names = [
        name
        for name, found in record.originals.items()
        if record.same_boot(undone)
        and found != undone.originals.get(name, found)
        and found in undone.ours.get(name, ())
        # Each may have found the other's.
        and (later or undone.originals[name] not in record.ours.get(name, ()))
    ]
    if not names:
        return
    journal = Journal.claimed(other)
    try:
        for name in names:
            journal.inherit(Path(name), undone.originals[name])
    finally:
        journal.release()


def is_applied(array: Array, state_dir: Path) -> bool:
    """Whether values are applied to stay that this boot has not forgotten. Raise PermissionError
    if that cannot be seen: to say that none are would be wrong."""
    with contextlib.suppress(AutotuneError, FileNotFoundError):
        record = Journal.load(applied_path(state_dir, array.uuid)).record
        return record.of_this_boot(array.root)
    return False
