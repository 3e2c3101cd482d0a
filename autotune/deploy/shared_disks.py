"""Disks that are in several arrays: their settings belong to the profile of one of these.

Two profiles on the same queue cannot both be in force, and neither was proven beside the other.
So whoever comes second leaves the settings of such disks as they are, and says so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.deploy.in_force import active
from autotune.deploy.persisted import persisted_uuids, profile_path
from autotune.errors import AutotuneError, UsageError
from autotune.knobs import is_of_disks
from autotune.knobs.originals import disk_ids
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import Profile
from autotune.safety.applied import Stopped, applied_profile, known_by_record, stopped_array
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_records
from autotune.system import sysfs
from autotune.system.array import Array, list_arrays


@dataclass(frozen=True)
class Other:
    """Another array, as people call it, whose profile has set a disk; `undo`: what ends that."""

    name: str
    undo: str


def set_by_another(array: Array, state_dir: Path) -> Other | None:
    """The array whose profile sets something on disks of this one, be it applied or persisted, and
    that array running or stopped. A profile that cannot be read may do so."""
    others = [other for other in list_arrays(array.root) if other.uuid != array.uuid]
    for other in others:
        if found := _running(array, other, state_dir):
            return found
    running = {array.uuid, *(other.uuid for other in others)}
    return next(_stopped(array, state_dir, running), None)


def _running(array: Array, other: Array, state_dir: Path) -> Other | None:
    damaged: list[str] = []
    profiles = active(other, state_dir, damaged)
    now = _shares(array, other.disks, disk_ids(other))
    # A disk that has left it since keeps what it has set there.
    setting = [
        each
        for each in profiles
        if _sets_disks(each.profile) and (now or _shares(array, each.profile.disks))
    ]
    if not (setting or (damaged and now) or _holds(other, array, state_dir)):
        return None
    undo = f"`autotune restore {other.device}`"
    if damaged or any(each.how == "persisted" for each in setting):
        undo = f"`autotune unpersist {other.device}`, then {undo},"
    return Other(other.device, undo)


def _holds(other: Array, array: Array, state_dir: Path) -> bool:
    """Whether a disk of the array has something that the record of the other one puts back. A
    profile that was applied later need not name it."""
    return any(
        sysfs.device(file).name in array.disks and file.exists() and sysfs.original(file) != text
        for file, text in known_by_record(other, state_dir).items()
    )


def _stopped(array: Array, state_dir: Path, running: set[str]) -> Iterator[Other]:
    for path in applied_records(state_dir):
        # One that cannot be read may be of disks of this array.
        stopped = stopped_array(path) or Stopped(path.stem, "", path.stem, frozenset(array.disks))
        if stopped.uuid in running or not _of_this_boot(path, array.root):
            continue
        profile = _loaded(applied_profile(state_dir, path.stem))
        ids = profile.disks if profile is not None else ()
        if _shares(array, stopped.leaves, ids) and (profile is None or _sets_disks(profile)):
            yield Other(f"{stopped.device}, which does not run,", "`autotune restore --all`")
    for uuid in persisted_uuids(array.root):
        profile = _loaded(profile_path(uuid, array.root)) if uuid not in running else None
        if uuid in running or (profile is not None and not _sets_disks(profile)):
            continue
        # Where the profile does not say which disks it is for, it may be for these.
        if profile is None or not profile.disks or _shares(array, profile.disks):
            undo = f"`autotune unpersist {uuid}`, then `autotune restore --all`,"
            yield Other(f"{uuid}, which does not run,", undo)


def _of_this_boot(path: Path, root: Path) -> bool:
    try:
        return Journal.load(path).record.of_this_boot(root)
    except (AutotuneError, OSError):
        return True


def _loaded(path: Path) -> Profile | None:
    try:
        return load_profile(path)
    except UsageError:
        return None


def _shares(array: Array, *disks: Iterable[str]) -> bool:
    """Whether one of these disks, by name or by what it says of itself, is in the array."""
    ours = {*array.disks, *disk_ids(array)}
    return any(not ours.isdisjoint(each) for each in disks)


def _sets_disks(profile: Profile) -> bool:
    """Whether a profile has set something on disks, or has to put something back there."""
    for name in (*profile.knobs, *profile.before):
        try:
            if is_of_disks(name):
                return True
        except UsageError:
            # A later version may know it.
            return True
    return False


def left_to_another(
    names: Iterable[str], array: Array, state_dir: Path
) -> tuple[frozenset[str], str]:
    """Which of these settings are of disks that another array's profile has set, and so are left as
    they are; and the sentence that says so, and how that ends, or ""."""
    left = [name for name in names if is_of_disks(name)]
    other = set_by_another(array, state_dir) if left else None
    if other is None:
        return frozenset(), ""
    return frozenset(left), (
        f"{', '.join(left)}: left as found, since the profile of {other.name} has set disks that "
        f"{array.device} is on, too; {other.undo} ends that."
    )
