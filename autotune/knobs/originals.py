"""What an array had before a profile, disk by disk: disks come, go, and change their names."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from autotune.knobs import ALL, is_of_disks
from autotune.knobs.resets import resets
from autotune.knobs.texts import of_disk, on_disks, texts
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, Value
from autotune.system import disk_originals
from autotune.system.array import Array
from autotune.system.blockdev import hardware


def with_before(
    profile: Profile, array: Array, before: Setting, system: Iterable[str] | None
) -> Profile:
    """The profile with what this array had before it, on which disks, and what of it followed a
    sysctl (None: not known)."""
    known = None if system is None else tuple(system)
    update = {"before": dict(before), "disks": disk_ids(array), "system": known}
    return profile.model_copy(update=update)


def before_here(profile: Profile, array: Array) -> Setting:
    """What the array had before its profile, in the order of the disks that it has now.

    A disk of which that is noted (`disk_originals`) has what is noted. Else one that has come
    since has what one had that has left, else what most had. What cannot be told apart, since the
    profile does not say of which disks it is, is left out.
    """
    found = dict(profile.before)
    for name, value in profile.before.items():
        if not is_of_disks(name):
            continue
        parts, own = str(value).split(","), _noted(array, name)
        if len(parts) == 1 and not own:
            continue
        one_each = len(parts) in (1, len(array.disks))
        ids = profile.disks or (disk_ids(array) if one_each else ())
        if len(parts) not in (1, len(ids)):
            del found[name]
        else:
            each = parts * len(ids) if len(parts) == 1 else parts
            had = {**dict(zip(ids, each, strict=True)), **own}
            found[name] = _joined(_placed(had, disk_ids(array)))
    return found


def _noted(array: Array, name: str) -> dict[str, str]:
    """What is noted of a setting of the array's disks, by what these say they are."""
    found = {}
    for disk, known_as in zip(array.disks, disk_ids(array), strict=True):
        note = disk_originals.noted(of_disk(array.root, disk, name))
        if note is not None and note.uuid == array.uuid and note.original:
            found[known_as] = note.original
    return found


def _placed(had: Mapping[str, str], disks: tuple[str, ...]) -> list[str]:
    left = [text for disk, text in had.items() if disk not in disks]
    most = Counter(had.values()).most_common(1)[0][0]
    return [had[disk] if disk in had else left.pop(0) if left else most for disk in disks]


def tuned_on_disks(profile: Profile, array: Array) -> dict[Path, str]:
    """What the files of the array's disks read under its profile, by file; and those of disks that
    have left it since, as far as they are there."""
    setting = {name: value for name, value in profile.knobs.items() if is_of_disks(name)}
    left, found = _left(profile, array), {}
    for name, value in setting.items():
        on_left = on_disks(array.root, name, value, left, len(profile.disks))
        found.update({path: text for path, text in on_left.items() if path.exists()})
    return {**found, **texts(array, setting)}


def _left(profile: Profile, array: Array) -> dict[int, str]:
    """The names of disks that have left the array, by their place among those of the profile. One
    that does not say what it is could be another one."""
    here = set(disk_ids(array)) | set(array.disks)
    if here.issuperset(profile.disks):
        return {}
    blocks = (array.root / "sys/block").iterdir()
    names = {hardware(folder.name, array.root): folder.name for folder in blocks}
    disks = enumerate(profile.disks)
    return {n: names[disk] for n, disk in disks if disk in names and disk not in here}


def reset_with_schedulers(array: Array, known: Mapping[Path, str]) -> Setting:
    """Of settings that a switch of the scheduler resets, what is `known` on every disk."""
    found: dict[str, Value] = {}
    for name in (knob.name for knob in ALL if is_of_disks(knob.name)):
        files = [of_disk(array.root, disk, name) for disk in array.disks]
        if resets(of_disk(array.root, array.disks[0], "scheduler"), files[0]):
            values = [known.get(file, "") for file in files]
            if all(values):
                found[name] = _joined(values)
    return found


def joined(profile: Profile, array: Array) -> set[str]:
    """The names of disks that have come since the profile, as far as that is known."""
    here = zip(disk_ids(array), array.disks, strict=True)
    return {name for disk, name in here if profile.disks and disk not in profile.disks}


def disk_ids(array: Array) -> tuple[str, ...]:
    """What each disk of the array says it is, in the order of `array.disks`; the names, which a
    boot may change, if not all of them do."""
    known = {member.disk: member.hardware for member in array.members}
    ids = tuple(known[disk] for disk in array.disks)
    return ids if all(ids) and len(set(ids)) == len(ids) else array.disks


def replaced(setting: Setting, array: Array, reads: Mapping[Path, str]) -> Setting:
    """A setting of which some files of the array's disks read otherwise."""
    found = dict(setting)
    for name, value in setting.items():
        if is_of_disks(name):
            files = texts(array, {name: value})
            # "": a setting of a scheduler that was not in force, so what a switch to it sets.
            values = [reads.get(path) or text for path, text in files.items()]
            if len(values) != len(array.disks):
                continue
            found[name] = _joined(values)
    return found


def _joined(values: Collection[str]) -> Value:
    different = set(values)
    text = different.pop() if len(different) == 1 else ",".join(values)
    return int(text) if text.isdecimal() else text
