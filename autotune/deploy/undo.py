"""Undoing a persisted profile: what udev has set for it goes back as what was applied does.

Nothing was recorded when udev set it. What the array itself had before is in the profile, and what
its disks had is noted by the rules (`system.disk_originals`), which is enough if all else is lost.
"""

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from autotune.deploy.persisted import persisted_uuids, profile_path
from autotune.deploy.udevd import settle
from autotune.errors import RefusalError, UsageError
from autotune.knobs import is_of_disks
from autotune.knobs.iosched import RESET_BY_SWITCH
from autotune.knobs.originals import before_here
from autotune.knobs.profile_file import load_profile
from autotune.knobs.scheduler import NONE, requests_after_switch
from autotune.knobs.texts import follows_sysctl, of_disk, texts
from autotune.knobs.write_order import DEPTHS, OF_REDUNDANCY, after_switch
from autotune.problem.profile import Profile, save_profile
from autotune.problem.setting import Setting, Value
from autotune.safety.applied import Stopped, is_applied, known_by_record, ours_by_record, recorded
from autotune.safety.locks import Lockable, lock
from autotune.safety.new_journal import new_journal
from autotune.safety.noted_records import note
from autotune.safety.other_folders import is_applied_elsewhere
from autotune.safety.paths import applied_path, applied_profile_path, journal_path
from autotune.system import ownership, sysfs
from autotune.system.array import Array
from autotune.system.disk_originals import BEING_SET, Note, noted_arrays, noted_for


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
    back, theirs = _on_disks(array, profile, notes, known)
    if profile is not None and isinstance(array, Array):
        own, others = _on_array(array, profile, known)
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
        told += _unknown(array, profile, {*notes, *recorded(array, state_dir)})
        told += _hidden(array, profile)
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
            f"{error} It says what was there before, so nothing is removed. Mend that and try "
            f"again, or move {path} elsewhere if the values may stay as they are."
        ) from None


def not_noted(array: Array, state_dir: Path) -> list[str]:
    """What of a persisted profile has no way back, since the notes of the disks are gone or
    damaged: a sentence each, for whoever sets something over it."""
    profile = _persisted(array)
    if profile is None:
        return []
    known = {*noted_for(array.uuid, array.root), *recorded(array, state_dir)}
    return [
        f"{text}; until then it is taken for the original."
        for text in _unknown(array, profile, known)
    ]


def unrecorded(state_dir: Path, root: Path = Path("/")) -> list[str]:
    """The UUIDs of the arrays for which disks are still set, by what is noted of them, though
    nothing is persisted for them, or applied with any state folder that is there."""
    persisted = persisted_uuids(root)
    found = []
    for uuid in noted_arrays(root):
        if uuid in persisted or is_applied_elsewhere(uuid, state_dir):
            continue
        known, notes = known_by_record(stopped(uuid, root), state_dir), noted_for(uuid, root)
        back, _ = _on_disks(stopped(uuid, root), None, notes, known)
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


def _on_array(
    array: Array, profile: Profile, known: Mapping[Path, str]
) -> tuple[dict[Path, str], list[Path]]:
    """The array's own files that udev has set and that are not `known` yet, with what goes back
    there; and those over which somebody else has set something."""
    before = texts(array, _own(before_here(profile, array)))
    tuned = texts(array, _own(profile.knobs))
    ours, theirs = {}, []
    for file in before.keys() & tuned.keys() - known.keys():
        if follows_sysctl(array, file.name, before[file], profile.system):
            before[file] = "system"
        if sysfs.original(file) == before[file]:
            continue
        if sysfs.value(file) == tuned[file]:
            ours[file] = before[file]
        else:
            theirs.append(file)
    return ours, theirs


def _hidden(array: Array, profile: Profile) -> list[str]:
    """What the profile may have set and is hidden while the array has no redundancy, as on the way
    from RAID 10 to 5. Where the array was assembled like that, udev has not set it."""
    names = sorted(
        name
        for name, value in profile.knobs.items()
        if name in OF_REDUNDANCY and value != profile.before.get(name)
    )
    if names and not array.redundant and not (array.md / names[0]).exists():
        return [
            f"{' and '.join(names)} of {array.device}, which cannot be seen while the array has no "
            "redundancy: with its next level look at them, or start the array anew"
        ]
    return []


def _unknown(array: Array, profile: Profile, known: Collection[Path]) -> list[str]:
    """The files of its disks that read as the profile has it, but what was there before is neither
    noted nor recorded: the notes are damaged or gone, or an earlier version took none."""
    changed = {n: v for n, v in profile.knobs.items() if v != profile.before.get(n)}
    tuned = texts(array, {n: v for n, v in changed.items() if is_of_disks(n)})
    told = []
    for file, text in tuned.items():
        if file not in known and sysfs.value(file) == text:
            told.append(
                f"{file} reads {text}, as the profile has it; what it read before is not noted "
                "(a reboot with nothing persisted brings that back)"
            )
    return told


def _own(setting: Setting) -> Setting:
    return {name: value for name, value in setting.items() if not is_of_disks(name)}


def _on_disks(
    array: Lockable,
    profile: Profile | None,
    notes: Mapping[Path, Note],
    known: Collection[Path],
) -> tuple[dict[Path, str], list[Path]]:
    """The same of its disks' files, also of disks that have left it."""
    reads = dict[Path, str]()
    for file in notes:
        # Throttling that is off cannot be read.
        with contextlib.suppress(OSError):
            reads[file] = sysfs.original(file)
    ours = {
        file: notes[file].original for file, text in reads.items() if _is_ours(file, text, notes)
    }
    theirs = [file for file in reads if file not in ours and file not in known]
    theirs = [file for file in theirs if reads[file] not in (notes[file].original, "")]
    foreign = [file for file in theirs if _value_for(profile, file, array.root) is not None]
    if all(reads[file] == text for file, text in ours.items()):
        return {}, foreign
    stays = dict[Path, str]()
    for file, text in ours.items():
        if file.name == "nr_requests" and text != reads[file]:
            depths = [file.parent / depth for depth in DEPTHS]
            stays |= {each: reads[each] for each in depths if each in notes and each in reads}
        if file.name == "scheduler" and text != reads[file]:
            stays |= {
                each: now
                for each, now in _reset_beside(file, text).items()
                # With its note lost, what reads as the profile has it is nobody else's.
                if each in notes or now != str(_value_for(profile, each, array.root))
            }
    return {**{f: text for f, text in stays.items() if f not in known}, **ours}, foreign


def _reset_beside(scheduler: Path, back: str) -> dict[Path, str]:
    """What a switch of the scheduler back resets, with what that reads: somebody else has set it,
    another array's profile perhaps. As far as the scheduler takes it."""
    disk, found = sysfs.device(scheduler), {}
    for name in RESET_BY_SWITCH:
        with contextlib.suppress(OSError):
            found[disk / name] = sysfs.value(disk / name)
    length = disk / "queue/nr_requests"
    if back == NONE and length in found:
        most = requests_after_switch(disk, NONE) or int(found[length])
        found[length] = str(min(int(found[length]), most))
    return found


def _is_ours(file: Path, reads: str, notes: Mapping[Path, Note]) -> bool:
    """Whether a file reads so on our account, be it that somebody has switched back to the original
    scheduler, but not to a third one."""
    scheduler = sysfs.device(file) / "queue/scheduler"
    switch = notes.get(scheduler)
    if switch is not None and file != scheduler:
        now = sysfs.value(scheduler)
        if now != switch.set_to and reads == after_switch(file, now):
            return now == switch.original
    return notes[file].set_to in (reads, BEING_SET)


def _value_for(profile: Profile | None, file: Path, root: Path) -> Value | None:
    """What a profile has for this file of a disk; None if nothing."""
    if profile is None:
        return None
    disk = sysfs.device(file).name
    mine = (name for name in profile.knobs if is_of_disks(name))
    return next((profile.knobs[n] for n in mine if file == of_disk(root, disk, n)), None)


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
        journal.keep(applied_path(state_dir, array.uuid))
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
