"""Undoing a persisted profile: what udev has set for it goes back as what was applied does.

Nothing was recorded when udev set it. What the array itself had before is in the profile, and what
its disks had is noted by the rules (`system.disk_originals`), which is enough if all else is lost.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from autotune.deploy.persisted import persisted_uuids, profile_path
from autotune.deploy.set_by_udev import (
    hidden_without_redundancy,
    on_array,
    on_disks,
    without_original,
)
from autotune.deploy.udevd import settle
from autotune.errors import RefusalError, UsageError
from autotune.knobs.profile_file import load_profile, save_profile
from autotune.problem.profile import Profile
from autotune.safety.applied import Stopped, is_applied, known_by_record, ours_by_record, recorded
from autotune.safety.handed_over import keep
from autotune.safety.locks import Lockable, lock
from autotune.safety.new_journal import new_journal
from autotune.safety.other_folders import is_applied_elsewhere
from autotune.safety.paths import applied_path, applied_profile_path, journal_path
from autotune.system import ownership, sysfs
from autotune.system.array import Array
from autotune.system.disk_originals import BEING_SET, Note, noted_arrays, noted_for
from autotune.system.noted_records import note, removed, told_removed


def record(array: Array | Stopped, state_dir: Path) -> list[str]:
    """Record what udev has set, under the lock, which remembers it for other state folders."""
    with lock(array, journal_path(state_dir, array.uuid), applies=True, undoes=True):
        return record_persisted(array, state_dir)


def record_persisted(array: Array | Stopped, state_dir: Path) -> list[str]:
    """Record as applied what udev has set on an array for the profile that is persisted for it,
    unless that is recorded already; of one that does not run, on its disks. Of a profile that is
    gone, what the disks' notes say. Whoever holds the lock of the array calls it before anything
    goes over these values, undoes them, or removes the profile. Return what stays, in words:
    what somebody else has set over them, or of what nothing is noted.

    Raise UsageError if the profile cannot be used, RefusalError or AutotuneError if nothing can be
    recorded.
    """
    profile = _persisted(array)
    notes = _whole_notes(array)
    if profile is None and (not notes or is_applied_elsewhere(array.uuid, state_dir)):
        return []
    known = known_by_record(array, state_dir)
    back, theirs = on_disks(array, profile, notes, known)
    if profile is not None and isinstance(array, Array):
        own, others = on_array(array, profile, known)
        back, theirs = {**back, **own}, [*theirs, *others]
    ours = ours_by_record(array, state_dir)
    back = {
        file: text
        for file, text in back.items()
        if known.get(file) != text or sysfs.original(file) not in (text, "", *ours.get(file, ()))
    }
    _record(profile, array, back, state_dir)
    told = [f"{file} reads {sysfs.value(file)}, which was set after that" for file in theirs]
    if profile is not None and isinstance(array, Array):
        told += without_original(array, profile, {*notes, *recorded(array, state_dir)})
        told += hidden_without_redundancy(array, profile)
    return sorted(told)


def _whole_notes(array: Lockable) -> dict[Path, Note]:
    """The notes of an array's disks, none of which udev is about to finish: a value that it sets a
    moment later would be taken for somebody else's. One that was cut short stays as it is."""
    notes, seen = noted_for(array.uuid, array.root), set[Path]()
    while begun := {file for file, note in notes.items() if note.set_to == BEING_SET} - seen:
        seen |= begun
        settle(array.root)
        notes = noted_for(array.uuid, array.root)
    return notes


def refuse_unreadable(array: Lockable) -> None:
    """Raise RefusalError, with what to do, if the profile that is persisted for an array cannot be
    used: it alone may say what was there before."""
    try:
        _persisted(array)
    except UsageError as error:
        path = profile_path(array.uuid, array.root)
        raise RefusalError(
            f"{error} It says what was there before, so nothing is removed. Correct that and try "
            f"again, or move {path} elsewhere if the values may stay as they are."
        ) from None


def not_noted(array: Array, state_dir: Path) -> list[str]:
    """What has no way back, a sentence each, for whoever sets something over it: what was applied
    and whose record was removed, and what of a persisted profile is not known any more, since the
    notes of the disks are gone or damaged."""
    lost = removed(array.root, lambda record: record.stem == array.uuid)
    told = [told_removed(record, array.device) for record in lost.values()]
    if (profile := _persisted(array)) is not None:
        known = {*noted_for(array.uuid, array.root), *recorded(array, state_dir)}
        told += without_original(array, profile, known)
    return [f"{text}; until then it is taken for the original." for text in told]


def unrecorded(state_dir: Path, root: Path = Path("/")) -> list[str]:
    """The UUIDs of the arrays for which disks are still set, by what is noted of them, though
    nothing is persisted for them, or applied with any state folder that is there."""
    persisted = persisted_uuids(root)
    found = []
    for uuid in noted_arrays(root):
        if uuid in persisted or is_applied_elsewhere(uuid, state_dir):
            continue
        known, notes = known_by_record(stopped(uuid, root), state_dir), noted_for(uuid, root)
        back, _ = on_disks(stopped(uuid, root), None, notes, known)
        # What a switch back would reset beside them was set by nobody.
        if (back.keys() & notes.keys()) - known.keys():
            found.append(uuid)
    return found


def tell_unrecorded(state_dir: Path, root: Path = Path("/")) -> list[str]:
    """The same, a sentence each."""
    return [
        f"{names} still {'has' if len(disks) == 1 else 'have'} what a profile of the array {uuid} "
        "has set; `autotune restore --all` undoes that."
        for uuid in unrecorded(state_dir, root)
        if (disks := sorted(stopped(uuid, root).leaves)) and (names := ", ".join(disks))
    ]


def stopped(uuid: str, root: Path = Path("/")) -> Stopped:
    """An array that does not run, by its UUID, with the disks that udev has set for it."""
    disks = frozenset(sysfs.device(file).name for file in noted_for(uuid, root))
    return Stopped(uuid, uuid, f"array {uuid}", disks, root)


def _persisted(array: Lockable) -> Profile | None:
    path = profile_path(array.uuid, array.root)
    if not path.exists():
        return None
    ownership.refuse(path, f"The profile {path}")
    return load_profile(path)


def _record(
    profile: Profile | None, array: Lockable, before: Mapping[Path, str], state_dir: Path
) -> None:
    if not before:
        return
    known = known_by_record(array, state_dir)
    texts = {str(file): text for file, text in before.items()}
    path = journal_path(state_dir, array.uuid)
    journal = new_journal(path, array.uuid, array.device, before, array.root)
    try:
        if profile is not None and not is_applied(array, state_dir):
            save_profile(profile, applied_profile_path(state_dir, array.uuid))
        now = {name: journal.record.originals[name] for name in texts}
        journal.found_set(texts, now)
        keep(journal, applied_path(state_dir, array.uuid))
        # As where a profile is applied.
        with contextlib.suppress(OSError):
            note(applied_path(state_dir, array.uuid), array.root)
        newer = {str(file) for file, text in before.items() if known.get(file, text) != text}
        if newer:
            # A disk was in no array meanwhile, and somebody has set something else there.
            journal.found_set({n: texts[n] for n in newer}, {n: now[n] for n in newer})
    finally:
        if not journal.cleared:
            # Nothing was written that would have to go back.
            journal.close()
        journal.release()
