"""What lies on top of an array (partitions, LVM, crypt, filesystems, swap) and beside it."""

import os
from dataclasses import dataclass
from pathlib import Path

from autotune.system import layers, sysfs
from autotune.system.array import list_arrays
from autotune.system.blockdev import Device
from autotune.system.mountinfo import mounted, plain


@dataclass(frozen=True)
class Mount:
    """A filesystem on the array. `device` is the kernel name of what it lies on, `number` the
    mount's own; `options` are those of the mount and of the filesystem; `root` is the folder of the
    filesystem that is seen, another than "/" in a bind mount."""

    number: int
    mountpoint: Path
    fstype: str
    device: str
    read_only: bool
    options: frozenset[str] = frozenset()
    root: str = "/"

    def option(self, name: str) -> int:
        """The number of an option such as `stripe=48`; 0 without it."""
        values = (o.removeprefix(f"{name}=") for o in self.options if o.startswith(f"{name}="))
        return next((int(value) for value in values if value.isdecimal()), 0)


@dataclass(frozen=True)
class Holder:
    """A block device on top of the array: `kind` is partition, lvm, crypt, md, bcache or dm."""

    name: str
    kind: str
    label: str
    """What people call it: "vg0-home" for "dm-3"."""


@dataclass(frozen=True)
class Stack:
    """Everything that uses the array, and the arrays that share its disks."""

    mounts: tuple[Mount, ...]
    swaps: tuple[str, ...]
    holders: tuple[Holder, ...]
    beside: tuple[str, ...]

    @property
    def in_use(self) -> bool:
        return bool(self.mounts or self.swaps or self.holders)

    @property
    def writable(self) -> tuple[Mount, ...]:
        """The filesystems that a scratch file could be made on, if they have room: no other one
        is mounted over them."""
        return tuple(mount for mount in self.mounts if not mount.read_only and _is_seen(mount))

    def mount_for(self, path: Path) -> Mount | None:
        """The filesystem of this array that the path (or its nearest existing parent) is on."""
        path = path.resolve()
        while not path.exists():
            path = path.parent
        number = mount_number(path)
        return next((mount for mount in self.mounts if mount.number == number), None)


def _is_seen(mount: Mount) -> bool:
    """Whether its mountpoint leads to it."""
    try:
        return mount.mountpoint.is_dir() and mount_number(mount.mountpoint) == mount.number
    except OSError:
        return False


def mount_number(path: Path) -> int:
    """The number of the mount that a path is really on, whatever is mounted over or below it
    (proc_pid_fdinfo(5), Linux 3.15)."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        text = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    finally:
        os.close(descriptor)
    return int(text.split("mnt_id:")[1].split()[0])


def is_mountpoint(path: Path) -> bool:
    """Whether something is mounted there, be it another folder of the same filesystem, which
    `Path.is_mount` does not see."""
    return path.exists() and (
        path == path.parent or mount_number(path) != mount_number(path.parent)
    )


def read_stack(array: Device) -> Stack:
    """Walk up from an array or a disk through holders and partitions, and match mounts and swap."""
    above = holders(array.name, array.root)
    names = {array.name, *(holder.name for holder in above)}
    numbers = {
        number: name
        for name in names
        if (number := sysfs.read_or(_entry(name, array.root) / "dev", ""))
    }
    return Stack(
        mounts=_mounts(numbers, names, array.root),
        swaps=_swaps(names, array.root),
        holders=above,
        beside=tuple(
            other.name
            for other in list_arrays(array.root)
            if other.name != array.name and other.leaves & array.leaves
        ),
    )


def _entry(name: str, root: Path) -> Path:
    return root / "sys/class/block" / name


def holders(name: str, root: Path) -> tuple[Holder, ...]:
    """The devices on top, nearest first, each once."""
    found: dict[str, Holder] = {}
    entry = _entry(name, root)
    partitions = [p.parent.name for p in sorted(entry.glob("*/partition"))]
    held = [p.name for p in sorted((entry / "holders").glob("*"))]
    for above in partitions + held:
        found[above] = _holder(above, root)
        for further in holders(above, root):
            found.setdefault(further.name, further)
    return tuple(found.values())


def _holder(name: str, root: Path) -> Holder:
    entry = _entry(name, root)
    if (entry / "partition").exists():
        return Holder(name, "partition", name)
    if (entry / "md").is_dir():
        return Holder(name, "md", name)
    if (entry / "dm").is_dir():
        kind = sysfs.read_or(entry / "dm/uuid", "").split("-")[0].lower()
        label = sysfs.read_or(entry / "dm/name", name)
        return Holder(name, kind if kind in ("lvm", "crypt") else "dm", label)
    return Holder(name, "bcache" if name.startswith("bcache") else "device", name)


def _mounts(numbers: dict[str, str], names: set[str], root: Path) -> tuple[Mount, ...]:
    """btrfs (and other filesystems of several devices) show an anonymous number, so the source
    device is looked at too, which is one of them. Whoever mounts a FUSE filesystem chooses what is
    shown as its source, so only root's word counts there, and none of what lies on no device, such
    as a tmpfs."""
    mounts = []
    on_none = _on_no_device(root)
    one_of = {each: name for name in names for each in layers.of_one_btrfs(name, root)}
    for each in mounted(root / "proc/self"):
        anybodys = each.kind.partition(".")[0] == "fuse" and "user_id=0" not in each.options
        untold = anybodys or each.kind in on_none
        source = "" if untold else _kernel_name(each.source, root)
        device = numbers.get(each.device) or (source if source in names else None)
        if device is None and each.kind == "btrfs":
            device = one_of.get(source or "")
        if device is not None:
            mounts.append(
                Mount(
                    each.number,
                    Path(each.place),
                    each.kind,
                    device,
                    read_only="ro" in each.options,
                    options=each.options,
                    root=each.root,
                )
            )
    return tuple(mounts)


def _on_no_device(root: Path) -> set[str]:
    """The kinds of filesystem whose source is a mere word (filesystems(5)). What FUSE serves may
    lie on a device all the same."""
    lines = sysfs.read_or(root / "proc/filesystems", "").splitlines()
    return {line.split()[1] for line in lines if line.startswith("nodev")} - {"fuse"}


def _swaps(names: set[str], root: Path) -> tuple[str, ...]:
    """Swap devices on the array. A swap file is on a filesystem, which is a mount already."""
    lines = sysfs.read_or(root / "proc/swaps", "").split("\n")[1:]
    files = [plain(line.split(" ")[0]) for line in lines if line.strip()]
    return tuple(file for file in files if _kernel_name(file, root) in names)


def _kernel_name(file: str, root: Path) -> str | None:
    """The kernel name of a device file, through /dev/mapper and other symlinks."""
    if not file.startswith("/dev/"):
        return None
    path = root / file.lstrip("/")
    if root == Path("/") and path.exists():
        number = path.stat().st_rdev
        device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        if device.exists():
            return device.resolve().name
    return Path(os.path.realpath(path)).name
