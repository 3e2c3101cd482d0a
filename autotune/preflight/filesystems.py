"""What is to be said of the filesystems on an array before a run. Changes nothing."""

import errno
import os
import shlex
from pathlib import Path

from autotune.errors import RefusalError
from autotune.system import layers
from autotune.system.array import Array
from autotune.system.scratch_space import find_place
from autotune.system.stack import Mount, Stack, mount_number

GIVEN_UP = (errno.EIO, errno.EUCLEAN, errno.ESHUTDOWN)


def failed(stack: Stack) -> list[str]:
    """One that met an error it cannot go on from, as XFS does at a failed write of its log, lets
    nobody even list a folder."""
    return [_say_failed(mount) for mount in stack.mounts if _has_failed(mount)]


def refuse_failed(folder: Path, stack: Stack) -> None:
    """Raise RefusalError if a folder is in such a filesystem."""
    for mount in stack.mounts:
        if folder.is_relative_to(mount.mountpoint) and _has_failed(mount):
            raise RefusalError(_say_failed(mount))


def _has_failed(mount: Mount) -> bool:
    try:
        # Another one may be mounted over it.
        if mount_number(mount.mountpoint) == mount.number:
            os.scandir(mount.mountpoint).close()
    except OSError as error:
        return error.errno in GIVEN_UP
    return False


def _say_failed(mount: Mount) -> str:
    where = shlex.quote(str(mount.mountpoint))
    return (
        f"The filesystem on {mount.mountpoint} ({mount.fstype}) has given up after an error, and "
        "nothing in it can be used; look for the cause in the kernel log (`dmesg`), then "
        f"`umount {where}`, repair it, and mount it again."
    )


def where_to_write(array: Array, stack: Stack, told: bool) -> str | None:
    """`told`: somebody has said where."""
    return _spread(array, stack) if told else _no_room(array, stack)


def _no_room(array: Array, stack: Stack) -> str | None:
    """Phases that write are then left out, which is half an answer."""
    why_not = find_place(stack, array).why_not
    return f"What writes cannot be measured on {array.device}: {why_not}." if why_not else None


def _spread(array: Array, stack: Stack) -> str | None:
    """What is measured in a filesystem that lies elsewhere too is not the array's alone."""
    for mount in stack.writable:
        devices = layers.below(mount.device, array.root, stop=(array.name,))
        if other := layers.elsewhere(devices, array.name, array.root):
            return (
                f"The filesystem on {mount.mountpoint} lies on {layers.label(other, array.root)} "
                f"too, so what is measured in it may not be {array.device}, and settings of "
                f"{array.device} help only the files that lie on it."
            )
    return None
