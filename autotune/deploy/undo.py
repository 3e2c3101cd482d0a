"""Undoing a persisted profile: what udev has set for it goes back as what was applied does.

Nothing was recorded when udev set it. What the array had before is in the profile.
"""

from collections.abc import Mapping
from pathlib import Path

from autotune.deploy.persist import profile_path
from autotune.knobs import ALL, for_array, is_of_disks
from autotune.knobs.before import before_here, before_on_disks, tuned_on_disks
from autotune.knobs.profile_file import load_profile
from autotune.knobs.texts import follows_sysctl, texts
from autotune.problem.profile import Profile, save_profile
from autotune.problem.setting import Setting
from autotune.safety.applied import is_applied, known_by_record
from autotune.safety.apply import journaled_paths
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, applied_profile_path, journal_path
from autotune.system import ownership, sysfs
from autotune.system.array import Array


def record_persisted(array: Array, state_dir: Path) -> list[str]:
    """Record as applied what udev has set on an array for the profile that is persisted for it,
    unless that is recorded already. Whoever holds the lock of the array calls it before anything
    goes over these values, undoes them, or removes the profile. Return what somebody else has set
    over them, in words: that stays.

    Raise UsageError if the profile cannot be used, RefusalError or AutotuneError if nothing can be
    recorded.
    """
    path = profile_path(array.uuid, array.root)
    if not path.exists():
        return []
    ownership.refuse(path, f"The profile {path}")
    profile = load_profile(path)
    known = known_by_record(array, state_dir)
    ours, theirs = {}, []
    tuned = {**texts(array, _own(profile.knobs)), **tuned_on_disks(profile, array)}
    for file, text in _before(profile, array).items():
        reads = sysfs.value(file)
        if file in known or file not in tuned:
            continue
        if reads == tuned[file]:
            ours[file] = text
        elif reads != text:
            theirs.append(f"{file} reads {reads}, which autotune did not write")
    if any(sysfs.original(file) != text for file, text in ours.items()):
        _record(profile, array, ours, state_dir)
    return theirs


def _before(profile: Profile, array: Array) -> dict[Path, str]:
    """What the files read before the profile (`sysfs.original`)."""
    had = before_here(profile, array)
    found = texts(array, _own(had))
    for file in found:
        if follows_sysctl(array, file.name, found[file], profile.system):
            found[file] = "system"
    return {**found, **before_on_disks(profile, array)}


def _own(setting: Setting) -> Setting:
    return {name: value for name, value in setting.items() if not is_of_disks(name)}


def _record(profile: Profile, array: Array, first: Mapping[Path, str], state_dir: Path) -> None:
    paths = journaled_paths(array, for_array(array, ALL), checks=False)
    paths = list(dict.fromkeys([*paths, *first]))
    path = journal_path(state_dir, array.uuid)
    journal = new_journal(path, array.uuid, array.device, paths, array.root)
    try:
        if not is_applied(array, state_dir):
            save_profile(profile, applied_profile_path(state_dir, array.uuid))
        journal.keep(applied_path(state_dir, array.uuid), {str(p): t for p, t in first.items()})
    finally:
        if not journal.cleared:
            # Nothing was written that would have to go back.
            journal.close()
        journal.release()
