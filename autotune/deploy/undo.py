"""Undoing a persisted profile: the values that udev has set since the boot go back too.

The record of what was applied is true for the assembly that it was made in. What the array had
before is in the profile.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.deploy.in_force import active
from autotune.deploy.persist import profile_path
from autotune.errors import InfeasibleError
from autotune.knobs import ALL, by_name, for_array, is_of_disks, read_setting, restoring
from autotune.knobs.before import before_here, before_on_disks, read_before_others, tuned_on_disks
from autotune.knobs.profile_file import load_profile
from autotune.knobs.scheduler import NONE, requests_after_switch
from autotune.knobs.texts import follows_sysctl
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.safety import deferred_restore
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.guardian import guarded
from autotune.safety.journal import Journal
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system import sysfs
from autotune.system.array import Array


@dataclass(frozen=True)
class Before:
    """What goes back: settings of an array, and files of its disks, which may differ."""

    setting: Setting = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    theirs: tuple[str, ...] = ()
    """What somebody else has set since, which stays, in words."""
    system: tuple[str, ...] = ()
    """Which of the setting follow the sysctl again."""

    def __bool__(self) -> bool:
        return bool(self.setting or self.files)


def before_persisted(
    arrays: Sequence[Array], state_dir: Path
) -> tuple[Mapping[str, Before], list[str]]:
    """What each array had before the profile that is persisted for it, by device: of what reads now
    as a profile in force on one of them says. What somebody else has set since is theirs, and left
    out. And of which that is not known, since its profile cannot be read, a sentence each."""
    ours: dict[Path, set[str]] = {}
    settings: dict[str, Setting] = {}
    unknown: dict[Array, str] = {}
    for array in arrays:
        damaged: list[str] = []
        in_force = active(array, state_dir, damaged)
        if not any(each.how == "persisted" for each in in_force) and damaged:
            unknown[array] = (
                f"What {array.device} had before its persisted profile is not known: "
                f"{' '.join(damaged)}"
            )
        for each in in_force:
            settings[array.device] = {**each.profile.knobs, **settings.get(array.device, {})}
            for path, text in tuned_on_disks(each.profile, array).items():
                ours.setdefault(path, set()).add(text)
    found = {}
    for array, (profile, wanted) in _found_by_each([a for a in arrays if a not in unknown]).items():
        before = before_here(profile, array)
        own = [by_name(name) for name in before if not is_of_disks(name)]
        knobs = [knob for knob in own if knob.applies(array)]
        now = read_setting(array, knobs)
        back: Setting = {n: before[n] for n in now if now[n] == settings[array.device].get(n)}
        read = {path: sysfs.value(path) for path in wanted}
        files = {p: text for p, text in wanted.items() if read[p] in ours.get(p, ())}
        theirs = [(n, value) for n, value in now.items() if n not in back and value != before[n]]
        theirs += [(str(p), read[p]) for p in wanted if p not in files and read[p] != wanted[p]]
        told = (f"{what} reads {value}, which autotune did not write" for what, value in theirs)
        system = [n for n in back if follows_sysctl(array, n, back[n], profile.system)]
        found[array.device] = Before(back, files, tuple(told), tuple(system))
    return found, list(unknown.values())


def _found_by_each(arrays: Sequence[Array]) -> dict[Array, tuple[Profile, dict[Path, str]]]:
    """The persisted profiles, and what files of disks read before each. On disks of several arrays
    that may be what another one had set there before: then what that one had found counts."""
    paths = {array: profile_path(array.uuid, array.root) for array in arrays}
    persisted = [array for array in arrays if paths[array].exists()]
    persisted.sort(key=lambda array: paths[array].stat().st_mtime_ns, reverse=True)
    profiles = [(load_profile(paths[array]), array) for array in persisted]
    return {
        array: (profile, read_before_others(before_on_disks(profile, array), profiles[number:]))
        for number, (profile, array) in enumerate(profiles, 1)
    }


def put_back_persisted(
    array: Array, before: Before, state_dir: Path, notice: Callable[[str], None]
) -> list[str]:
    """Set the array to what it had before; return the files that were written. Nothing is left
    that would undo this. Raise AutotuneError, what was in force being back, if it cannot be."""
    array = array.now()
    knobs = tuple(by_name(name) for name in before.setting)
    path = journal_path(state_dir, array.uuid)
    deferred_restore.settle(path, array.root)
    paths = journaled_paths(array, for_array(array, ALL), checks=False)
    paths = list(dict.fromkeys([*paths, *before.files]))
    with (
        lock(array, path),
        guarded(new_journal(path, array.uuid, array.device, paths), notice) as guardian,
    ):
        journal = guardian.journal
        apply(array, knobs, before.setting, journal)
        for file in before.system:
            # Whatever that says now.
            journal.writing(array.md / file, "system")
            journal.store(array.md / file, "system")
        _write(before.files, journal)
        originals = {Path(name): text for name, text in journal.record.originals.items()}
        changed = [
            str(path)
            for path, text in originals.items()
            # Those come and go with it.
            if not sysfs.is_schedulers_own(path) and sysfs.original(path) != text
        ]
        journal.close()
    return changed


def _write(files: Mapping[Path, str], journal: Journal) -> None:
    for write in restoring(files):
        if sysfs.is_schedulers_own(write.path) and not write.path.exists():
            # It has gone with the scheduler.
            continue
        if sysfs.value(write.path) != write.text:
            lengths = _lengths_of_others(write) if write.path.name == "scheduler" else []
            for each in (write, *lengths):
                journal.writing(each.path, each.text)
                journal.store(each.path, each.text)
        if (now := sysfs.value(write.path)) != write.text:
            raise InfeasibleError(f"{write.path} reads {now} after {write.text} was written.")


def _lengths_of_others(switch: sysfs.Write) -> list[sysfs.Write]:
    """The length of a disk's queue, if somebody has set it: a switch of the scheduler resets it."""
    folder, path = sysfs.device(switch.path), switch.path.with_name("nr_requests")
    usual = requests_after_switch(folder, sysfs.value(switch.path))
    now, most = sysfs.read_or(path, ""), requests_after_switch(folder, switch.text)
    if usual is None or most is None or now in ("", str(usual)):
        return []
    return [sysfs.Write(path, str(min(int(now), most) if switch.text == NONE else int(now)))]
