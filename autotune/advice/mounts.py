"""Mount options that cost something on every read or removal."""

from collections.abc import Iterator
from shlex import quote

from autotune.advice.array_facts import ArrayFacts
from autotune.advice.finding import FindingKind, Seen
from autotune.advice.mounted_anew import UNMOUNTED, mounted_anew
from autotune.system.blockdev import number, whole_disk

_FSTAB = "Change it in /etc/fstab too."


def _strictatime(facts: ArrayFacts) -> Iterator[Seen]:
    for mount in facts.stack.mounts:
        # The kernel names the two others, never the strict way; lazytime keeps times in memory.
        others = {"relatime", "noatime", "lazytime"} & mount.options
        if mount.options and not others and not mount.read_only:
            yield Seen(
                f"{mount.mountpoint} is mounted with strictatime.",
                (f"mount -o remount,relatime {quote(str(mount.mountpoint))}",),
                note=f"{_FSTAB} With relatime, programs that compare a file's times still work.",
            )


def _discard(facts: ArrayFacts) -> Iterator[Seen]:
    for mount in facts.filesystems(("ext4", "xfs")):
        queue = facts.entry(whole_disk(mount.device, facts.array.root)) / "queue"
        if "discard" not in mount.options or not number(queue / "discard_max_bytes"):
            continue
        note = risk = ""
        again: tuple[str, ...] = (f"mount -o remount,nodiscard {quote(str(mount.mountpoint))}",)
        if mount.fstype != "ext4":
            # XFS takes it at a mount alone.
            again, note = mounted_anew(facts, mount, {"discard"})
            risk = UNMOUNTED
        yield Seen(
            f"{mount.mountpoint} is mounted with discard.",
            (*again, "systemctl enable --now fstrim.timer"),
            risk,
            f"{_FSTAB} fstrim then tells the disks once a week what is free. {note}".strip(),
        )


CHECKS = (
    FindingKind(
        "strictatime",
        "a filesystem on the array is mounted with strictatime",
        "Each read of a file causes a write of its time, which on RAID 4, 5 and 6 is a write of "
        "parity too.",
        "mount(8), strictatime and relatime",
        _strictatime,
    ),
    FindingKind(
        "online-discard",
        "an ext4 or XFS is mounted with discard, and the array passes it on",
        "Each removal of files sends commands to the disks that others' requests wait for.",
        "xfs(5), discard; fstrim(8)",
        _discard,
    ),
)
