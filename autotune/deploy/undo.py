"""Undoing a persisted profile: what udev has set for it goes back as what was applied does.

Nothing was recorded when udev set it. What the array had before is in the profile.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from autotune.deploy.persisted import profile_path, set_by_udev
from autotune.deploy.set_by_udev import (
    disks_since,
    has_reset,
    reset_with,
    seen_by_udev,
    set_last,
)
from autotune.knobs import ALL, for_array, is_of_disks
from autotune.knobs.before import (
    before_here,
    before_on_disks,
    on_named_disks,
    tuned_on_disks,
)
from autotune.knobs.profile_file import load_profile
from autotune.knobs.texts import follows_sysctl, texts
from autotune.problem.profile import Profile, save_profile
from autotune.problem.setting import Setting
from autotune.safety.applied import (
    Stopped,
    is_applied,
    known_by_record,
    ours_by_record,
    stopped_array,
)
from autotune.safety.apply import journaled_paths
from autotune.safety.locks import Lockable, lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, applied_profile_path, journal_path
from autotune.system import ownership, sysfs
from autotune.system.array import Array


def record(array: Array | Stopped, state_dir: Path) -> list[str]:
    """Record what udev has set, under the lock, which remembers it for other state folders."""
    with lock(array, journal_path(state_dir, array.uuid), applies=True, undoes=True):
        if isinstance(array, Stopped):
            return record_stopped(array, state_dir)
        return record_persisted(array, state_dir)


def record_persisted(array: Array, state_dir: Path) -> list[str]:
    """Record as applied what udev has set on an array for the profile that is persisted for it,
    unless that is recorded already. Whoever holds the lock of the array calls it before anything
    goes over these values, undoes them, or removes the profile. Return what somebody else has set
    over them, in words: that stays.

    Raise UsageError if the profile cannot be used, RefusalError or AutotuneError if nothing can be
    recorded.
    """
    profile = _persisted(array)
    if profile is None:
        return []
    back = _before(profile, array)
    tuned = {**texts(array, _own(profile.knobs)), **tuned_on_disks(profile, array)}
    newer = disks_since(profile, array)
    # One that has joined and left again: only udev knows of it.
    left = {name: disk for name, disk in newer.items() if disk not in array.disks}
    there = on_named_disks(profile, profile.knobs, array.root, left.values())
    seen = seen_by_udev(newer, array.root)
    seen |= _known_by_others(array, state_dir, seen)
    back |= {file: text for file, text in seen.items() if file in back or file in there}
    tuned |= {file: text for file, text in there.items() if file in back}
    known = known_by_record(array, state_dir)
    ours, theirs = _judged(back, tuned, known, array)
    reset = reset_with(ours, tuned, profile, array, seen)
    ours |= {file: text for file, text in reset.items() if file not in known or file not in tuned}
    paths = journaled_paths(array, for_array(array, ALL), checks=False)
    # Of what goes with a scheduler and is not known, its switch back sets what is right.
    switched = {file: {text, tuned.get(file)} for file, text in ours.items()}
    switched = {file: both for file, both in switched.items() if len(both) > 1}
    paths = [
        each
        for each in paths
        if not any(has_reset(file, both, each) for file, both in switched.items())
    ]
    ours |= {file: known[file] for file in _again(tuned, known, array, state_dir)}
    _record(profile, array, ours, paths, state_dir)
    return theirs


def _again(
    tuned: Mapping[Path, str], known: Mapping[Path, str], array: Array, state_dir: Path
) -> list[Path]:
    """The files that udev has set again after another profile was applied, as where a member was
    taken out and added anew."""
    reads = {file: sysfs.value(file) for file in known if file in tuned and file.exists()}
    udevs = {f: text for f, text in reads.items() if text == tuned[f] != known[f]}
    ours = ours_by_record(array, state_dir)
    return [file for file, text in udevs.items() if text not in ours.get(file, ())]


def record_stopped(array: Stopped, state_dir: Path) -> list[str]:
    """The same of the disks of an array that does not run, as far as they say what they are."""
    profile = _persisted(array)
    if profile is None:
        return []
    had, tuned = (
        on_named_disks(profile, setting, array.root, sorted(array.leaves))
        for setting in (profile.before, profile.knobs)
    )
    known = known_by_record(array, state_dir)
    ours, theirs = _judged(had, tuned, known, array)
    _record(profile, array, ours, [], state_dir)
    return theirs


def stopped(uuid: str, root: Path = Path("/")) -> Stopped:
    """An array that does not run, by its UUID, with the disks that udev has set for it."""
    return Stopped(uuid, uuid, f"array {uuid}", frozenset(set_by_udev(uuid, root)), root)


def _persisted(array: Lockable) -> Profile | None:
    path = profile_path(array.uuid, array.root)
    if not path.exists():
        return None
    ownership.refuse(path, f"The profile {path}")
    return load_profile(path)


def _before(profile: Profile, array: Array) -> dict[Path, str]:
    """What the files read before the profile (`sysfs.original`)."""
    found = texts(array, _own(before_here(profile, array)))
    for file in found:
        if follows_sysctl(array, file.name, found[file], profile.system):
            found[file] = "system"
    return {**found, **before_on_disks(profile, array)}


def _known_by_others(array: Array, state_dir: Path, seen: Mapping[Path, str]) -> dict[Path, str]:
    """What the records of other arrays know, of which a disk may have been a member: of what they
    have set, and of what udev has not `seen`."""
    found: dict[Path, str] = {}
    for path in sorted(applied_path(state_dir, "any").parent.glob("*.jsonl")):
        other = stopped_array(path)
        if other is not None and other.uuid != array.uuid:
            other = dataclasses.replace(other, root=array.root)
            ours = ours_by_record(other, state_dir)
            found |= {
                file: text
                for file, text in known_by_record(other, state_dir).items()
                if file not in seen or seen[file] in ours.get(file, ())
            }
    return found


def _own(setting: Setting) -> Setting:
    return {name: value for name, value in setting.items() if not is_of_disks(name)}


def _judged(
    back: Mapping[Path, str], tuned: Mapping[Path, str], known: Collection[Path], array: Lockable
) -> tuple[dict[Path, str], list[str]]:
    """What udev has set and is not `known` yet, with what goes back there; and what somebody else
    has set over it, in words. What udev has set later for another array goes back with that."""
    ours, theirs = {}, []
    for file in back.keys() & tuned.keys() - set(known):
        reads = sysfs.value(file)
        if sysfs.original(file) == back[file]:
            continue
        later = set_last(file, array.uuid, array.root)
        if reads == tuned[file] or later.get(reads) is False:
            ours[file] = back[file]
        elif reads not in later:
            theirs.append(f"{file} reads {reads}, which was set after that")
    return ours, sorted(theirs)


def _record(
    profile: Profile,
    array: Lockable,
    before: Mapping[Path, str],
    paths: Iterable[Path],
    state_dir: Path,
) -> None:
    if not before:
        return
    path = journal_path(state_dir, array.uuid)
    both = list(dict.fromkeys([*paths, *before]))
    journal = new_journal(path, array.uuid, array.device, both, array.root)
    try:
        if not is_applied(array, state_dir):
            save_profile(profile, applied_profile_path(state_dir, array.uuid))
        journal.found_set({str(file): text for file, text in before.items()})
        journal.keep(applied_path(state_dir, array.uuid))
    finally:
        if not journal.cleared:
            # Nothing was written that would have to go back.
            journal.close()
        journal.release()
