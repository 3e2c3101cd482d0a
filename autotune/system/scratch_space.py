"""Where a scratch file may be, and how much room it may take there."""

import fcntl
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import RefusalError
from autotune.system import layers, ownership
from autotune.system.array import Array
from autotune.system.memory import spare_bytes
from autotune.system.programs import UnseenError
from autotune.system.stack import Stack
from autotune.system.underlying import Underlying, is_in_memory, read_underlying

MAX_BYTES = 1 << 30
MIN_BYTES = 64 << 20
BLOCK_BYTES = 1 << 20
SHARE_OF_FREE = 10
FS_IOC_GETFLAGS = 0x80086601
KEEPING_FLAGS = {0x10: "immutable", 0x20: "append-only"}
"""FS_IMMUTABLE_FL and FS_APPEND_FL (linux/fs.h): of a folder, both keep what is in it there."""
FULL_TO_START = 0.8
"""A thin pool fuller than this, in data or metadata, gets no scratch file."""
FULL_TO_GO_ON = 0.9
"""One that becomes fuller than this, by whoever's writes, ends the run."""


@dataclass(frozen=True)
class Place:
    """Where a scratch file may be made unasked: `folder`, or None and the reason."""

    folder: Path | None
    underlying: Underlying = field(default_factory=Underlying)
    why_not: str = ""


def refuse_if_shared(folder: Path) -> None:
    """Raise RefusalError if others could put another folder in the place of a scratch folder."""
    if found := ownership.fault(folder):
        raise RefusalError(
            "Others than root could put another file in the place of the scratch file, so there "
            f"can be none in {folder}: {found} Or name a folder that only root writes to "
            "(--scratch)."
        )


def find_place(stack: Stack, array: Array) -> Place:
    """The first filesystem on an array where a scratch file does no harm and has room."""
    reasons: list[str] = []
    # A bind mount shows a folder that is somebody's, as an application's.
    for mount in sorted(stack.writable, key=lambda mount: mount.root != "/"):
        underlying = read_underlying(mount, array.name, array.root)
        if underlying.against:
            reasons.append(f"{mount.mountpoint} is not written to, since {underlying.against}")
            continue
        if found := ownership.fault(mount.mountpoint):
            reasons.append(
                f"{mount.mountpoint} is not written to, since others than root could put another "
                f"file in the place of the scratch file: {found.removesuffix('.')}, or mount a "
                "folder of root's in it elsewhere (mount --bind), which is used then"
            )
            continue
        try:
            scratch_bytes(mount.mountpoint, underlying)
        except RefusalError as error:
            reasons.append(str(error).removesuffix("."))
            continue
        return Place(mount.mountpoint, underlying)
    return Place(None, why_not=reasons[0] if reasons else "")


def scratch_bytes(folder: Path, underlying: Underlying) -> int:
    """How large a scratch file in `folder` may be: 1 GiB, or a tenth of what is free there, and
    in whatever lies below.

    Raise RefusalError if that is too little to measure with, or none may be there at all.
    """
    if underlying.bar:
        raise RefusalError(f"There can be no scratch file in {folder}: {underlying.bar}.")
    if kept := _keeps_its_files(folder):
        raise RefusalError(
            f"{folder} is {kept}, so no scratch file could be removed from it; use another folder "
            f"(--scratch), or take that off it (chattr -{kept[0]} {folder})."
        )
    free = free_bytes(folder, underlying)
    size = min(MAX_BYTES, free // SHARE_OF_FREE) // BLOCK_BYTES * BLOCK_BYTES
    if size < MIN_BYTES:
        raise RefusalError(
            f"{folder} has {free >> 20} MiB free, and a scratch file may take a tenth of it but "
            f"needs {MIN_BYTES >> 20} MiB; free some space, or use another folder (--scratch)."
        )
    return size


def free_bytes(folder: Path, underlying: Underlying) -> int:
    """What is free for a scratch file: the least of what the filesystem has for its users, in
    that folder's project, and what is below it.

    Raise RefusalError if a pool is too full already, or cannot be seen.
    """
    free = _free(folder)
    for file in underlying.stores:
        free = min(free, _free(file.parent))
        if is_in_memory(file, underlying.root):
            free = min(free, spare_bytes(underlying.root))
    for name in underlying.pools:
        label = layers.label(name, underlying.root)
        try:
            pool = layers.pool(name, underlying.root)
        except UnseenError as error:
            raise RefusalError(
                f"It cannot be seen how full the thin pool {label} is: {error}."
            ) from None
        if trouble := too_full(pool, FULL_TO_START):
            raise RefusalError(
                f"The thin pool {label} below {folder} {trouble}, and a scratch file is made only "
                f"below {FULL_TO_START:.0%}; extend the pool, or free space in it (`fstrim`)."
            )
        free = min(free, pool.free_bytes)
    return free


def _keeps_its_files(folder: Path) -> str:
    """What keeps everybody from removing a file from a folder; "" if nothing does."""
    flags = bytearray(8)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return ""
    try:
        fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, flags)
    except OSError:
        # A filesystem that has no such flags.
        return ""
    finally:
        os.close(descriptor)
    # The kernel knows only the first half of what it calls a long.
    found = int.from_bytes(flags[:4], sys.byteorder)
    return next((text for flag, text in KEEPING_FLAGS.items() if found & flag), "")


def _free(folder: Path) -> int:
    # Without the blocks that are kept for root; with the limit of the folder's project.
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def too_full(pool: layers.Pool, limit: float) -> str:
    """What is wrong with a pool: "is 85 % full"; "" if nothing is."""
    if not pool.sound:
        return "takes no writes or has to be repaired"
    if pool.data > limit:
        return f"is {pool.data:.0%} full"
    if pool.metadata > limit:
        return f"has its metadata {pool.metadata:.0%} full"
    return ""
