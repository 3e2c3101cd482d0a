"""The superblocks of arrays that autotune has made, on their members. Light.

Kernel include/uapi/linux/raid/md_p.h, `struct mdp_superblock_1`; version 1.2 lies 4 KiB from the
start.
"""

import contextlib
import mmap
import os
import struct
from collections.abc import Iterable, Iterator

AT_BYTES = SIZE_BYTES = 4096
MAGIC = (0xA92B4EFC).to_bytes(4, "little") + (1).to_bytes(4, "little")
UUID_AT = 16
LEVEL_AT, DISKS_AT = 72, 92
"""Of `level` and `layout`; of `raid_disks`."""
EVENTS_AT = 200
MOST_AT_FIRST = 1
"""With so many events mdadm writes it (super1.c, init_super1 and write_init_super1); md counts one
more before the first write to the array (md_write_start)."""
MAY_LACK = {4: 1, 5: 1, 6: 2}
"""Members, by level."""


def node(disk: str) -> str:
    """Where a disk is opened; the kernel writes a slash of its name as an exclamation mark."""
    return f"/dev/{disk.replace('!', '/')}"


def bears(disk: str, uuid: str) -> bool:
    """Whether there is a superblock with this UUID on a disk. OSError if it cannot be read."""
    with _opened(disk) as descriptor:
        return _is_ours(descriptor, uuid)


def cannot_run(members: Iterable[str], uuid: str) -> bool:
    """Whether an array cannot be started with these members alone, whatever force is used. False if
    they cannot be read."""
    found = list(members)
    try:
        return bool(found) and len(found) < min(_needed(disk, uuid) for disk in found)
    except OSError:
        return False


def is_unwritten(members: Iterable[str], uuid: str) -> bool:
    """Whether nothing was ever written to an array, by what stands on these members. False if they
    cannot be read."""
    try:
        counts = [_events(disk, uuid) for disk in members]
    except OSError:
        return False
    return bool(counts) and all(count is not None and count <= MOST_AT_FIRST for count in counts)


def _events(disk: str, uuid: str) -> int | None:
    """How many events of an array a superblock has seen; None if it is not of this array."""
    with _opened(disk) as descriptor:
        if not _is_ours(descriptor, uuid):
            return None
        block = _superblock(descriptor)
    events: int = struct.unpack_from("<Q", block, EVENTS_AT)[0]
    return events


def _needed(disk: str, uuid: str) -> int:
    """How many members its array needs, at the least, by what stands on one of them."""
    with _opened(disk) as descriptor:
        if not _is_ours(descriptor, uuid):
            return 0
        block = _superblock(descriptor)
    level, layout = struct.unpack_from("<iI", block, LEVEL_AT)
    disks: int = struct.unpack_from("<I", block, DISKS_AT)[0]
    needed = 1
    if level == 10:
        # The near copies of each block, and the far ones (md.rst, "layout").
        copies = max(1, (layout & 255) * (layout >> 8 & 255))
        needed = -(-disks // copies)
    elif level in MAY_LACK:
        needed = disks - MAY_LACK[level]
    return needed


@contextlib.contextmanager
def _opened(disk: str) -> Iterator[int]:
    """A disk to read from, past the page cache, which does not see what md writes."""
    descriptor = os.open(node(disk), os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
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


def zero(descriptor: int, uuid: str) -> str:
    """Zero a superblock, if it has this UUID; what prevents it, "" if nothing does."""
    try:
        if _is_ours(descriptor, uuid):
            with mmap.mmap(-1, SIZE_BYTES) as page:
                os.pwritev(descriptor, [page], AT_BYTES)
            os.fsync(descriptor)
    except OSError as error:
        return error.strerror or str(error)
    return ""
