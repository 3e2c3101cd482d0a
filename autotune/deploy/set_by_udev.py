"""What udev's rules have done to disks that no record has: those that joined after the profile, and
what a switch of the scheduler reset beside."""

from collections.abc import Collection, Mapping
from pathlib import Path

from autotune.deploy.persisted import (
    length_in_rule,
    marked,
    member_of,
    ruled_uuids,
)
from autotune.knobs import ALL, iosched, is_of_disks
from autotune.knobs.before import before_here, disks_here, joined
from autotune.knobs.scheduler import NONE, requests_after_switch
from autotune.knobs.texts import of_disk, on_own_disks
from autotune.knobs.write_order import resets
from autotune.problem.profile import Profile
from autotune.system import sysfs, udev_data
from autotune.system.array import Array
from autotune.system.blockdev import whole_disk


def disks_since(profile: Profile, array: Array) -> dict[str, str]:
    """The disks that have joined the array since its profile, by the names of their devices, also
    if they have left it again."""
    new, known = joined(profile, array), {*array.disks, *disks_here(profile, array.root).values()}
    left = {name: whole_disk(name, array.root) for name in marked(array.uuid, array.root)}
    left = {name: disk for name, disk in left.items() if disk not in known}
    return {**left, **{m.name: m.disk for m in array.members if m.disk in new}}


def seen_by_udev(devices: Mapping[str, str], root: Path) -> dict[Path, str]:
    """What udev saw on these devices' disks before it set them for any array, by file.

    Where partitions of a disk have joined several arrays, it saw at the second what the profile of
    the first had set, or what somebody had set since.
    """
    found: dict[Path, str] = {}
    for device, disk in devices.items():
        folder = root / "sys/block" / disk
        parts = {device, *(entry.name for entry in folder.glob(f"{disk}*"))}
        turns = sorted(parts, key=lambda each: (udev_data.set_since(each, root), each))
        for file in (of_disk(root, disk, knob.name) for knob in ALL if is_of_disks(knob.name)):
            name, ours = str(file.relative_to(folder)), set()
            for each in turns:
                text = udev_data.had(each, name, root)
                if text and text not in ours:
                    found[file] = text
                ours.add(udev_data.last_set(each, name, root))
    return found


def set_last(file: Path, uuid: str, root: Path) -> dict[str, bool]:
    """What udev has last set in a file of a disk, and whether another array's profile is in force
    there: one that is persisted or exported, and the disk, or a partition of it, is a member."""
    disk = sysfs.device(file).name
    folder = root / "sys/block" / disk
    others = ruled_uuids(root) - {uuid}
    found = {
        udev_data.last_set(device, str(file.relative_to(folder)), root): (
            member_of(device, root) in others
        )
        for device in (disk, *(entry.name for entry in folder.glob(f"{disk}*")))
    }
    return {text: theirs for text, theirs in found.items() if text}


def has_reset(file: Path, both: Collection[str | None], other: Path) -> bool:
    """Whether udev's store to a file, from one text to the other, has changed the other file. Only
    bfq turns write-back throttling off (kernel block/bfq-iosched.c, wbt_disable_default)."""
    if other.name == "wbt_lat_usec" and file.name == "scheduler" and "bfq" not in both:
        return False
    return resets(file, other)


def reset_with(
    ours: Mapping[Path, str],
    tuned: Mapping[Path, str],
    profile: Profile,
    array: Array,
    seen: Mapping[Path, str],
) -> dict[Path, str]:
    """What else a switch of the scheduler by udev has reset, or its switch back resets, with what
    goes back there: what somebody else has set since stays. `seen`: what disks had that have come
    since."""
    had: dict[Path, str] = {}
    for name, value in before_here(profile, array).items():
        if is_of_disks(name):
            had |= on_own_disks(array, name, value)
    new = joined(profile, array)
    had = {file: text for file, text in had.items() if sysfs.device(file).name not in new}
    had |= seen
    by_rule = length_in_rule(array.uuid, array.root)
    # The rule sets it under a scheduler that a disk had already, too.
    lengths = {file for file in seen if file.name == "nr_requests" and file not in tuned}
    found = {file: seen[file] for file in lengths if by_rule and sysfs.read_or(file, "") == by_rule}
    for scheduler, text in ours.items():
        if scheduler.name != "scheduler" or text == tuned[scheduler]:
            continue
        length = scheduler.with_name("nr_requests")
        found |= {
            scheduler.parents[1] / knob.file: str(knob.kernel_default)
            for knob in iosched.ALL
            if knob.scheduler == text
        }
        found |= {file: had[file] for file in had if resets(scheduler, file)}
        found |= {
            file: sysfs.original(file)
            for file in found
            if file in tuned and file.exists() and resets(scheduler, file)
        }
        found[length] = _length(length, had.get(length), text, tuned[scheduler], by_rule)
    return {file: text for file, text in found.items() if file not in ours and text}


def _length(file: Path, before: str | None, back: str, tuned: str, by_rule: str) -> str:
    """What goes back to the length of a queue, from the scheduler that is `tuned`: what somebody
    has set since stays, as far as the scheduler that goes `back` takes it. `by_rule`: the length
    that udev sets with the scheduler."""
    disk, reads = sysfs.device(file), sysfs.read_or(file, "")
    usual, most = requests_after_switch(disk, tuned), requests_after_switch(disk, back)
    if before and reads == by_rule:
        return before
    if most is None or reads in ("", str(usual), before):
        return before or str(most or "")
    return str(min(int(reads), most)) if back == NONE else reads
