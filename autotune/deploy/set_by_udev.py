"""What udev has set for a persisted profile on an array and its disks, and what goes back there.

Only the profile, and what the rules have noted of the disks, say what was there before.
"""

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from autotune.knobs import is_of_disks
from autotune.knobs.iosched import RESET_BY_SWITCH
from autotune.knobs.originals import before_here
from autotune.knobs.resets import DEPTHS, after_switch
from autotune.knobs.scheduler import NONE, requests_after_switch
from autotune.knobs.texts import follows_sysctl, of_disk, texts
from autotune.knobs.write_order import OF_REDUNDANCY
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, Value
from autotune.safety.locks import Lockable
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.disk_originals import BEING_SET, Note


def on_array(
    array: Array, profile: Profile, known: Mapping[Path, str]
) -> tuple[dict[Path, str], list[Path]]:
    """The array's own files that udev has set and that are not `known` yet, with what goes back
    there; and those over which somebody else has set something."""
    before = texts(array, _own(before_here(profile, array)))
    tuned = texts(array, _own(profile.knobs))
    ours, theirs = {}, []
    for file in before.keys() & tuned.keys() - known.keys():
        if follows_sysctl(array, file.name, before[file], profile.system):
            before[file] = sysfs.SYSTEM
        if sysfs.original(file) == before[file]:
            continue
        if sysfs.value(file) == tuned[file]:
            ours[file] = before[file]
        else:
            theirs.append(file)
    return ours, theirs


def hidden_without_redundancy(array: Array, profile: Profile) -> list[str]:
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


def without_original(array: Array, profile: Profile, known: Collection[Path]) -> list[str]:
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


def on_disks(
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
