"""Arrays that autotune has made on blank disks, and their removal: they are stopped, and their
superblocks zeroed, nothing else. Light: the guardian runs it when their maker is dead.

They are known by a UUID that was recorded before they were made. Superblock: kernel
include/uapi/linux/raid/md_p.h, `struct mdp_superblock_1`; version 1.2 lies 4 KiB from the start.
"""

import errno
import mmap
import os
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autotune.system import sysfs
from autotune.system.blockdev import SECTOR, md_uuid
from autotune.system.programs import find
from autotune.system.signature import signature

AT_BYTES = SIZE_BYTES = 4096
MAGIC = (0xA92B4EFC).to_bytes(4, "little") + (1).to_bytes(4, "little")
UUID_AT, DATA_AT = 16, 128
PATIENCE_S = 30.0
"""A load that was killed, or udev, may have it open for moments."""
LOOK_S = 0.2
COMMAND_S = 20.0
BLOCK = Path("/sys/class/block")


@dataclass
class Removal:
    """What was removed, and what could not be, in words."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def remove(uuid: str, disks: Collection[str] = (), left_alone: bool = False) -> Removal:
    """Stop the arrays with this UUID (32 hex digits), and zero the superblocks that have it.
    `disks` are the kernel names of where those may be; none: anywhere, as after a reboot, when
    names have moved. One that was `left_alone`, its maker being dead, stays if somebody has put
    something on it: a design makes no filesystem.

    Never raises for one of them: what could not be removed is told.
    """
    found = Removal()
    everything = sorted(entry.name for entry in BLOCK.iterdir())
    members, unseen = _members(uuid, disks or everything)
    if disks and unseen:
        # One that was unplugged and is back has another name.
        moved = _members(uuid, [disk for disk in everything if disk not in disks])[0]
        members += moved
        unseen = {} if len(moved) >= len(unseen) else unseen
        found.failed += [
            f"whether /dev/{disk} has a superblock of ours cannot be seen ({why}); plug it in "
            "again, or delete the journal if it is gone for good"
            for disk, why in unseen.items()
        ]
    arrays = _arrays(uuid, members)
    if left_alone:
        looks = map(_content, arrays) if arrays else map(_content_below, members)
        if theirs := [fault for fault in looks if fault]:
            found.failed += theirs
            return found
    for name in arrays:
        if fault := _stop(name):
            found.failed.append(f"/dev/{name} cannot be stopped: {fault}")
        else:
            found.removed.append(f"/dev/{name}")
    for disk in members:
        if fault := _zero(disk, uuid):
            found.failed.append(f"the superblock of /dev/{disk} cannot be zeroed: {fault}")
        else:
            found.removed.append(f"the superblock on /dev/{disk}")
    return found


def _members(uuid: str, disks: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The disks that have a superblock with this UUID, and those of which that cannot be seen, with
    the reason."""
    found, unseen = [], {}
    for disk in disks:
        try:
            if _bears(disk, uuid):
                found.append(disk)
        except OSError as error:
            unseen[disk] = error.strerror or str(error)
    return found, unseen


def _arrays(uuid: str, members: Iterable[str]) -> list[str]:
    """Those that are known by their UUID, and those, begun perhaps, that have such a member."""
    names = {
        folder.parent.name: None
        for folder in sorted(Path("/sys/block").glob("*/md"))
        if md_uuid(folder.parent.name, sysfs.read_or(folder / "metadata_version", ""), Path("/"))
        == uuid
    }
    for member in members:
        for holder in sorted(Path("/sys/class/block", member, "holders").glob("*/md")):
            names[holder.parent.name] = None
    return list(names)


def _content(name: str) -> str:
    """Why an array may be somebody's by now, "" if nothing is on it."""
    # One that is not active has nothing on it yet, and cannot be read.
    if sysfs.read_or(BLOCK / name / "size", "0") == "0":
        return ""
    if found := signature(_node(name)):
        return (
            f"/dev/{name} was left by a design, but may be somebody's by now, so it stays: "
            f"{found}; `wipefs -a /dev/{name}` if nobody needs that, or delete the journal to "
            "keep the array"
        )
    return ""


def _content_below(disk: str) -> str:
    """The same of an array that is stopped, by what is on a member where its data begin. In each
    layout the first chunk, with the superblock of a filesystem, is whole on one of them."""
    try:
        with _opened(disk) as descriptor:
            sectors = int.from_bytes(_superblock(descriptor)[DATA_AT : DATA_AT + 8], "little")
    except OSError as error:
        return f"what is on /dev/{disk} cannot be seen ({error.strerror}), so it stays"
    if found := signature(_node(disk), sectors * SECTOR):
        return (
            f"/dev/{disk} was left by a design, but may be somebody's by now, so it stays: where "
            f"the array's data begin, {found}; assemble the array to look at it, or delete the "
            "journal to keep it"
        )
    return ""


def _stop(name: str) -> str:
    """Stop an array; what prevents it, "" if nothing does."""
    md = Path("/sys/block", name, "md")
    fault = ""
    for _ in _patiently():
        if sysfs.read_or(md / "array_state", "clear") == "clear":
            return ""
        fault = _run("mdadm", "--stop", f"/dev/{name}") or "mdadm --stop had no effect"
    return fault


def _run(*words: str) -> str:
    try:
        done = subprocess.run(
            (find(words[0]) or words[0], *words[1:]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )
    except OSError as error:
        return f"{words[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{words[0]} does not answer"
    lines = done.stderr.strip().splitlines()
    return lines[-1].rstrip(".") if done.returncode and lines else ""


def _patiently() -> Iterator[None]:
    """Again and again, until the patience is at its end."""
    deadline = time.monotonic() + PATIENCE_S
    yield
    while time.monotonic() < deadline:
        time.sleep(LOOK_S)
        yield


def _node(disk: str) -> str:
    """Where a disk is opened; the kernel writes a slash of its name as an exclamation mark."""
    return f"/dev/{disk.replace('!', '/')}"


def _bears(disk: str, uuid: str) -> bool:
    """Whether there is a superblock with this UUID on a disk. OSError if it cannot be read."""
    with _opened(disk) as descriptor:
        return _is_ours(descriptor, uuid)


@contextmanager
def _opened(disk: str) -> Iterator[int]:
    """A disk to read from, past the page cache, which does not see what md writes."""
    descriptor = os.open(_node(disk), os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int, uuid: str) -> bool:
    block = _superblock(descriptor)
    return block.startswith(MAGIC) and block[UUID_AT : UUID_AT + 16].hex() == uuid


def _superblock(descriptor: int) -> bytes:
    """What stands where a superblock of version 1.2 is, if there is one."""
    # Direct requests need memory of whole pages.
    with mmap.mmap(-1, SIZE_BYTES) as page:
        os.preadv(descriptor, [page], AT_BYTES)
        return page[:]


def _zero(disk: str, uuid: str) -> str:
    """Zero the superblock with this UUID; what prevents it, "" if nothing does."""
    fault = "it is in use"
    for _ in _patiently():
        try:
            flags = os.O_RDWR | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
            descriptor = os.open(_node(disk), flags)
        except OSError as error:
            if error.errno != errno.EBUSY:
                return error.strerror or str(error)
            # As udev does that hears late of the new superblock: it has begun the array again.
            for name in _arrays(uuid, [disk]):
                _stop(name)
            continue
        try:
            if _is_ours(descriptor, uuid):
                with mmap.mmap(-1, SIZE_BYTES) as page:
                    os.pwritev(descriptor, [page], AT_BYTES)
                os.fsync(descriptor)
            return ""
        except OSError as error:
            return error.strerror or str(error)
        finally:
            os.close(descriptor)
    return fault
