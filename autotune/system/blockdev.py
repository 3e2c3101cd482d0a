"""Block devices in sysfs: names, partitions, what they are made of. Changes nothing."""

import functools
import hashlib
import os
import stat
import sys
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from autotune.errors import UsageError
from autotune.system import sysfs
from autotune.system.programs import UnseenError, mdadm

SECTOR = 512
"""sysfs counts sizes of block devices in sectors of 512 bytes, whatever the disk's own."""


class Media(StrEnum):
    """What a member is made of; the slowest comes first."""

    HDD = "hdd"
    SSD = "ssd"
    NVME = "nvme"


class Device(Protocol):
    """A block device on which something may lie: an array, or a disk. `leaves` are the physical
    disks below it; `root` is "/" but in tests."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def leaves(self) -> frozenset[str]: ...
    @property
    def root(self) -> Path: ...


def whole_disk(name: str, root: Path = Path("/")) -> str:
    """The device that a partition is part of; any other name is returned as it is."""
    entry = root / "sys/class/block" / name
    return entry.resolve().parent.name if (entry / "partition").exists() else name


def leaves(name: str, root: Path = Path("/")) -> tuple[str, ...]:
    """The physical disks under a device, through partitions, dm and md."""
    disk = whole_disk(name, root)
    below = sorted(p.name for p in (root / "sys/block" / disk / "slaves").glob("*"))
    if not below:
        return (disk,)
    return tuple(dict.fromkeys(leaf for each in below for leaf in leaves(each, root)))


def number(path: Path) -> int:
    """The file's number; 0 where there is none."""
    text = sysfs.read_or(path, "0")
    return int(text) if text.isdigit() else 0


def media_of(disk: str, root: Path) -> Media:
    """What a physical disk is made of; unknown counts as the slowest."""
    if disk.startswith("nvme"):
        return Media.NVME
    rotational = sysfs.read_or(root / "sys/block" / disk / "queue/rotational", "1")
    return Media.HDD if rotational == "1" else Media.SSD


def hardware(disk: str, root: Path) -> str:
    """A short hash of what a disk says it is: names change with a boot. "" if it says nothing.

    Files: drivers/scsi/scsi_sysfs.c, drivers/nvme/host, drivers/block/virtio_blk.c, dm-sysfs.c.
    """
    block = root / "sys/block" / disk
    for file in ("wwid", "device/wwid", "serial", "device/serial", "dm/uuid"):
        if text := sysfs.read_or(block / file, ""):
            return hashlib.sha256(text.encode()).hexdigest()[:12]
    return ""


def md_uuid(name: str, metadata: str, root: Path) -> str:
    """mdadm's UUID, from md/uuid where the kernel has it (6.1 does), else from mdadm."""
    text = sysfs.read_or(root / "sys/block" / name / "md/uuid", "").replace("-", "").lower()
    if len(text) == 32 and text.strip("0"):
        if metadata.startswith("0.9") and sys.byteorder == "little":
            # The old superblock keeps four native words; the kernel prints them byte by byte.
            words = [bytes.fromhex(text[i : i + 8])[::-1].hex() for i in range(0, 32, 8)]
            return "".join(words)
        return text
    if root != Path("/"):
        return ""
    try:
        return _uuid_from_mdadm(name, sysfs.identity(root / "sys/block" / name))
    except UnseenError:
        return ""


@functools.cache
def _uuid_from_mdadm(name: str, _identity: str) -> str:
    """Asked once while an array runs: mdadm reads a member, which may take seconds. UnseenError if
    it does not tell, as of one that is just assembled."""
    if uuid := mdadm("--detail", name).get("MD_UUID", "").replace(":", "").lower():
        return uuid
    raise UnseenError(f"mdadm tells no UUID of {name}")


def leads_elsewhere(device: Device) -> bool:
    """Whether the file of its name is that of another device by now."""
    try:
        return kernel_name(device.device, device.root) != device.name
    except UsageError:
        return False


def kernel_name(device: str, root: Path) -> str:
    """The kernel's name of a device file. UsageError if it is no block device."""
    if not device:
        raise UsageError("DEVICE is empty; name an array, such as /dev/md0.")
    path = Path(device if "/" in device else f"/dev/{device}")
    file = root / path.relative_to("/") if path.is_absolute() else path
    if not file.exists():
        raise UsageError(
            f"There is no {path}; `cat /proc/mdstat` names the arrays of this machine."
        )
    if file.is_dir():
        raise UsageError(f"{device} is a folder; name the array's device, such as /dev/md0.")
    if root != Path("/"):
        return file.resolve().name
    status = file.stat()
    if not stat.S_ISBLK(status.st_mode):
        raise UsageError(f"{device} is not a block device; name an array, such as /dev/md0.")
    device_number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return (Path("/sys/dev/block") / device_number).resolve().name


def what_is(name: str, root: Path) -> str:
    """What a device that is no array is, in words."""
    entry = root / "sys/class/block" / name
    kind, parent = "a disk", whole_disk(name, root)
    if (entry / "partition").exists():
        kind = f"a partition of /dev/{parent}"
        if (root / "sys/block" / parent / "md").is_dir():
            return f"{kind}: name that"
    elif name.startswith("dm-"):
        uuid = sysfs.read_or(entry / "dm/uuid", "")
        kind = {"LVM": "an LVM volume", "CRYPT": "an encrypted (dm-crypt) device"}.get(
            uuid.split("-")[0], "a device-mapper device"
        )
    elif name.startswith(("loop", "zram", "nbd", "sr", "ram")):
        kind = f"a {name.rstrip('0123456789')} device"
    held = [p.name for p in (entry / "holders").glob("*") if (p / "md").is_dir()]
    if held:
        return f"{kind}, a member of the array /dev/{held[0]}: name that one"
    below = sorted(_arrays_below(name, root))
    if below:
        return f"{kind} on the array {' and '.join(f'/dev/{array}' for array in below)}: name that"
    return kind


def _arrays_below(name: str, root: Path) -> set[str]:
    """The nearest md arrays that a device lies on, through partitions, LVM and encryption."""
    entry = root / "sys/class/block" / name
    if (entry / "partition").exists():
        under = [whole_disk(name, root)]
    else:
        under = [path.name for path in (entry / "slaves").glob("*")]
    found = set()
    for each in under:
        is_array = (root / "sys/block" / each / "md").is_dir()
        found |= {each} if is_array else _arrays_below(each, root)
    return found


def uuid_words(uuid: str) -> str:
    """An array's UUID, 32 hex digits, as mdadm and udev's MD_UUID write it: four words with
    colons."""
    return ":".join(uuid[i : i + 8] for i in range(0, len(uuid), 8))
