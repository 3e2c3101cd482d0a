"""Undoing a persisted profile: the values that udev has set since the boot go back too.

The record of what was applied is true for the assembly that it was made in. What the array had
before is in the profile.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autotune.deploy.in_force import active
from autotune.deploy.persist import profile_path
from autotune.deploy.shared_disks import found_first, shares
from autotune.knobs import ALL, by_name, for_array, read_setting
from autotune.knobs.profile_file import load_profile
from autotune.problem.setting import Setting
from autotune.safety import deferred_restore
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.guardian import guarded
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system import sysfs
from autotune.system.array import Array


def before_persisted(array: Array, state_dir: Path, beside: Sequence[Array] = ()) -> Setting:
    """What the array had before the profile that is persisted for it, of those knobs that read now
    as a profile in force says: its own, or one of the arrays `beside`, which are undone with it, on
    disks that both have. What somebody else has set since is theirs, and left out."""
    profiles = active(array, state_dir, damaged=[])
    persisted = next((each.profile for each in profiles if each.how == "persisted"), None)
    if persisted is None:
        return {}
    knobs = [knob for knob in map(by_name, persisted.before) if knob.applies(array)]
    now = read_setting(array, knobs)
    ours = {
        name
        for each in profiles
        for name, value in each.profile.knobs.items()
        if now.get(name) == value
    }
    for other in beside:
        for each in active(other, state_dir, damaged=[]):
            ours |= {
                name
                for name, value in each.profile.knobs.items()
                if now.get(name) == value and shares(name, array, other)
            }
    return {name: persisted.before[name] for name in now if name in ours}


def before_persisted_each(arrays: Sequence[Array], state_dir: Path) -> Mapping[str, Setting]:
    """The same for several arrays, by device. What one of them found on disks that it shares may be
    what the profile of another had set there before: then what that one had found counts."""
    found = {each.device: dict(before_persisted(each, state_dir, arrays)) for each in arrays}
    paths = {array.device: profile_path(array.uuid, array.root) for array in arrays}
    persisted = [array for array in arrays if paths[array.device].exists()]
    # From the oldest on, so that each is right before a later one takes it over.
    persisted.sort(key=lambda array: paths[array.device].stat().st_mtime_ns)
    for number, array in enumerate(persisted):
        for earlier in reversed(persisted[:number]):
            profile = load_profile(paths[earlier.device])
            before = {**profile.before, **found[earlier.device]}
            mine = found[array.device]
            found[array.device] = dict(found_first(mine, array, earlier, profile, before))
    return found


def put_back_persisted(
    array: Array, before: Setting, state_dir: Path, notice: Callable[[str], None]
) -> list[str]:
    """Set the array to what it had before; return the files that were written. Nothing is left
    that would undo this. Raise AutotuneError, what was in force being back, if it cannot be."""
    array = array.now()
    knobs = tuple(by_name(name) for name in before)
    path = journal_path(state_dir, array.uuid)
    deferred_restore.settle(path, array.root)
    paths = journaled_paths(array, for_array(array, ALL), checks=False)
    with (
        lock(array, path),
        guarded(new_journal(path, array.uuid, array.device, paths), notice) as guardian,
    ):
        journal = guardian.journal
        apply(array, knobs, before, journal)
        for file in ("sync_speed_min", "sync_speed_max"):
            # What follows the sysctl when it was not set does so again.
            limit = array.root / "proc/sys/dev/raid" / file.replace("sync_speed", "speed_limit")
            if file in before and sysfs.read_or(limit, "") == str(before[file]):
                journal.writing(array.md / file, "system")
                journal.store(array.md / file, "system")
        changed = [
            str(name)
            for name, text in journal.record.originals.items()
            if sysfs.original(Path(name)) != text
        ]
        journal.close()
    return changed
