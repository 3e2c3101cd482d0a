"""A folder that a machine and its containers have in common, and that only root can open.

Each container has a /run and nodes of devices of its own, and a /sys of its own if it has its own
network; a lock on any of these is not seen elsewhere (tried on 6.1.176). But all mounts of devtmpfs
are one file system, and a process that may write to sysfs may mount it too. Light.
"""

import contextlib
import ctypes
import os
from pathlib import Path

from autotune.errors import RefusalError
from autotune.system.mountinfo import mounted

NAME = "autotune"
MARK = "kernel"
DEV = Path("/dev")
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
"""Numbers of system calls, the same on every architecture but alpha; Linux 5.2 has them."""
_CLOEXEC, _CREATE = 1, 6


def open_common() -> int | None:
    """A descriptor of the folder; None where devtmpfs cannot be reached. OSError without the
    permission, RefusalError if the folder is not root's own."""
    if _is_devtmpfs():
        dev = os.open(DEV, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    elif (mounted := _mounted_aside()) is not None:
        dev = mounted
    else:
        return None
    try:
        return open_own(NAME, DEV / NAME, dev)
    finally:
        os.close(dev)


def kernel_mark() -> str:
    """What stays the same as long as the kernel runs, for the machine and its containers, whatever
    their clocks say; "" where that folder cannot be reached."""
    with contextlib.suppress(OSError, RefusalError):
        if (place := open_common()) is None:
            return ""
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags
        try:
            with contextlib.suppress(FileExistsError):
                made = os.open(MARK, new, 0o600, dir_fd=place)
                with os.fdopen(made, "wb") as file:
                    file.write(os.urandom(16).hex().encode())
            with os.fdopen(os.open(MARK, os.O_RDONLY | flags, dir_fd=place), "rb") as file:
                return file.read(64).decode("ascii", "replace")
        finally:
            os.close(place)
    return ""


def open_own(name: str | Path, shown: Path, within: int | None = None) -> int:
    """A descriptor of a folder, made if missing, that is open to this user (root) alone; its mode
    is mended if it is not. RefusalError if somebody else owns it."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=within)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=within)
    except NotADirectoryError:
        raise RefusalError(
            f"{shown} is no folder, though locks belong there; find out who made it, and remove it."
        ) from None
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        os.close(descriptor)
        raise RefusalError(
            f"The folder {shown} belongs to user {status.st_uid}, who could hold locks in it; find "
            "out who made it, and remove it."
        )
    if status.st_mode & 0o077:
        os.fchmod(descriptor, 0o700)
    return descriptor


def _is_devtmpfs() -> bool:
    """Whether /dev is the machine's own, or that of all."""
    kinds = [mount.kind for mount in mounted() if mount.place == str(DEV)]
    return kinds[-1:] == ["devtmpfs"]


def _mounted_aside() -> int | None:
    """The root of devtmpfs, mounted nowhere that anybody could see it."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    context = call(_FSOPEN, b"devtmpfs", _CLOEXEC)
    if context < 0:
        return None
    try:
        if call(_FSCONFIG, context, _CREATE, None, None, 0) < 0:
            return None
        root: int = call(_FSMOUNT, context, _CLOEXEC, 0)
        return root if root >= 0 else None
    finally:
        os.close(context)
