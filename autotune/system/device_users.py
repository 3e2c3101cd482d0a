"""Who uses a block device without holding it: programs that have it open, loop devices, and what
the kernel serves to other machines.

O_EXCL is refused only if somebody else asked for exclusive use. Virtual machines, iSCSI targets
and databases on raw devices do not, and neither do the parts of the kernel that are listed here.
Others do: filesystems, swap, md, device-mapper, bcache, zram, DRBD, and of the SCSI target
(vhost-scsi has its stores too) "iblock" and "pscsi". nbd-server, tcmu and ublk are programs.

Not seen are: programs that have closed the file that they still write to (mmap, io_uring), those
that opened it on a filesystem of a cluster, and whole NVMe controllers that are passed through.
"""

import contextlib
import fcntl
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from autotune.errors import RefusalError
from autotune.system import inode, sysfs
from autotune.system.open_files import may_wait, open_files
from autotune.system.process import SYS_PTRACE, has_right, stat_words

PATIENCE_S = 3.0
"""udev opens a device for moments."""
AGAIN_S = 0.5
_OUTERMOST = "pid:[4026531836]"
"""The namespace of processes that sees all of them (PROC_PID_INIT_INO)."""


def kernel_user(device: Path, root: Path = Path("/")) -> str | None:
    """What in the kernel lies on a block device though it does not hold it, in words. It need not
    be in use just now: what is set up to be served may be served at any time."""
    wanted = _number(device)
    if wanted is not None and (loop := _loop_on(wanted, root)):
        return f"the loop device {loop}"
    for pattern, words, find in _KERNEL_USERS:
        for file in sorted(root.glob(pattern)):
            if wanted is not None and wanted in find(sysfs.read_or(file, "")):
                return words.format(*file.relative_to(root).parts)
    return None


LOOP_GET_STATUS64 = 0x4C05
LOOP_INFO = struct.Struct("=3Q208x")
"""Device, inode, and the number of the device that it lies on (include/uapi/linux/loop.h)."""


def _loop_on(wanted: int, root: Path) -> str | None:
    """A loop device that lies on a block device, whatever name that had when it was set up: one in
    another mount namespace, or one that is gone."""
    for folder in sorted(root.glob("sys/block/loop*/loop")):
        name = folder.parent.name
        if may_wait(Path(sysfs.read_or(folder / "backing_file", ""))):
            # The kernel asks about the file before it tells the device.
            continue
        with contextlib.suppress(OSError), (root / "dev" / name).open("rb") as file:
            said = fcntl.ioctl(file, LOOP_GET_STATUS64, bytes(LOOP_INFO.size))
            if LOOP_INFO.unpack(said)[2] == wanted:
                return name
    return None


def _by_path(text: str) -> Iterator[int | None]:
    """The first line is a path."""
    yield from (_number(Path(line)) for line in text.split("\n")[:1])


def _by_info(text: str) -> Iterator[int | None]:
    """As fileio and iblock put it (target_core_file.c, target_core_iblock.c)."""
    for path in re.findall(r"(?:File|UDEV PATH): (.+?)  (?:Size|readonly): ", text):
        yield _number(Path(path))


def _by_number(text: str, base: int) -> Iterator[int | None]:
    """A device number, as "9:0"."""
    major, _, minor = text.partition(":")
    if minor:
        yield os.makedev(int(major, base), int(minor, base))


_KERNEL_USERS: tuple[tuple[str, str, Callable[[str], Iterator[int | None]]], ...] = (
    ("sys/block/loop*/loop/backing_file", "the loop device {2}", _by_path),
    (
        "sys/kernel/config/target/core/*/*/info",
        "the store {5}/{6} of the kernel's SCSI target",
        _by_info,
    ),
    (
        "sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path",
        "the namespace {7} of {5} of the kernel's NVMe target",
        _by_path,
    ),
    (
        "sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file",
        "the USB gadget {4}",
        _by_path,
    ),
    ("sys/kernel/scst_tgt/devices/*/filename", "the SCST device {4}", _by_path),
    (
        "sys/class/rnbd-server/ctl/devices/*/block_dev/dev",
        "the RNBD server",
        partial(_by_number, base=10),
    ),
    (
        "sys/bus/xen-backend/devices/vbd-*/physical_device",
        "the disk {4} of a Xen guest",
        partial(_by_number, base=16),
    ),
)
"""Where each says what it lies on, and what to call it; {2} is the third part of the path."""


def program_with(device: Path, patience_s: float = PATIENCE_S) -> str | None:
    """A program that keeps a block device open, under whatever name it opened it, for longer than
    `patience_s`. Raise RefusalError if that cannot be seen."""
    deadline = time.monotonic() + patience_s
    while (found := _one_with(_nodes(device))) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def writer_to(device: Path) -> str | None:
    """A program that has a block device open for writing, but for this process and what it has
    started; one that only opens it for a moment, as mdadm does, is none. Raise RefusalError as
    `program_with`."""
    nodes = _nodes(device)
    found = _one_with(nodes, writes=True)
    if found:
        time.sleep(AGAIN_S)
    return found and _one_with(nodes, writes=True)


def _nodes(device: Path) -> set[tuple[int, int]]:
    """By kind and number, all that a program may open to get at a disk: SCSI and NVMe have devices
    beside it that pass commands on, as virtual machines use them."""
    own = _node(device)
    if own is None:
        return set()
    block = Path(f"/sys/dev/block/{os.major(own[1])}:{os.minor(own[1])}")
    files = [*block.glob("device/scsi_generic/*/dev"), *block.glob("device/bsg/*/dev")]
    generic = block.resolve().name.replace("nvme", "ng", 1)
    files.append(Path("/sys/class/nvme-generic", generic, "dev"))
    numbers = (number for file in files for number in _by_number(sysfs.read_or(file, ""), base=10))
    return {own, *((stat.S_IFCHR, number) for number in numbers if number is not None)}


def _one_with(nodes: set[tuple[int, int]], writes: bool = False) -> str | None:
    hidden = _hidden()
    for pid, files in open_files():
        if pid == os.getpid():
            continue
        hidden = hidden if files is not None else f"process {pid}"
        opened = [file for file in files or () if _opened(file) in nodes]
        if writes and (not any(map(_for_writing, opened)) or _is_below_us(pid)):
            continue
        if opened:
            return f"{sysfs.read_or(Path(f'/proc/{pid}/comm'), 'a program')} (process {pid})"
    if hidden:
        raise RefusalError(
            f"What all programs have open cannot be seen here ({hidden} cannot), so nobody knows "
            "who uses the device; run autotune outside of containers, with the right to look "
            "(CAP_SYS_PTRACE)."
        )
    return None


def _hidden() -> str:
    """Whose programs are not even listed here, or must not be looked into; "" if all can be."""
    if not has_right(Path("/proc/self"), SYS_PTRACE):
        return "those of other users"
    with contextlib.suppress(OSError):
        if str(Path("/proc/self/ns/pid").readlink()) != _OUTERMOST:
            return "those outside of this container"
    return ""


def _opened(file: Path) -> tuple[int, int] | None:
    """The kind and number of what an entry of /proc/PID/fd stands for, if that is a device."""
    try:
        found = inode.known(file)
    except OSError:
        return None
    return _device(found.mode, found.stands_for)


def _for_writing(file: Path) -> bool:
    about = sysfs.read_or(file.parents[1] / "fdinfo" / file.name, "")
    found = re.search(r"^flags:\s+([0-7]+)", about, re.M)
    return found is not None and int(found[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _is_below_us(pid: int) -> bool:
    """Whether this process has started another one, or what started that."""
    while pid > 1 and pid != os.getpid():
        words = stat_words(Path(f"/proc/{pid}"))
        pid = int(words[1]) if len(words) > 1 else 0
    return pid == os.getpid()


def _number(path: Path) -> int | None:
    """The number of the block device behind a path; None if there is none."""
    node = None if may_wait(path) else _node(path)
    return node[1] if node is not None and node[0] == stat.S_IFBLK else None


def _node(path: Path) -> tuple[int, int] | None:
    """The kind and number of a device node; None of anything else."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _device(status.st_mode, status.st_rdev)


def _device(mode: int, number: int) -> tuple[int, int] | None:
    kind = stat.S_IFMT(mode)
    return (kind, number) if kind in (stat.S_IFBLK, stat.S_IFCHR) else None
