"""The gate before writes to a raw array, or to blank disks: `--destructive DEVICE` must pass all of
it.

fio's own guard compares paths with /etc/mtab, and ends with exit status 0 when it trips; through
a symlink or a dm device on top it wrote, and destroyed data (MD_FACTS §6). So this one asks the
kernel, by opening the device exclusively, and looks at what is on it.
"""

import errno
import os
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.system.array import Array
from autotune.system.blockdev import Device
from autotune.system.device_users import loop_over, program_with
from autotune.system.signature import signature
from autotune.system.stack import Stack, read_stack


def check_named_twice(array: Array, named: str) -> None:
    """Raise UsageError unless `named` is the array's device, symlinks resolved."""
    if os.path.realpath(named) != os.path.realpath(array.device):
        raise UsageError(
            f"--destructive names {named}, but the array to tune is {array.device}; "
            "name that one twice if everything on it may be lost."
        )


def refuse_if_used(array: Device) -> None:
    """Raise RefusalError if anything at all is, or may be, on the raw device."""
    _refuse(array, users(array) or signature(array.device))


def refuse_if_not_blank(array: Device) -> None:
    """The same of what is on a device that this process holds, so that nobody can change it."""
    _refuse(array, signature(array.device))


def _refuse(array: Device, reason: str | None) -> None:
    if reason:
        raise RefusalError(f"{array.device} is not written to: {reason}.")


def users(array: Device) -> str | None:
    """Who or what uses the device, whatever is on it."""
    return in_use(read_stack(array)) or not_exclusive(array) or opened(array)


def in_use(stack: Stack) -> str | None:
    """What lies on the device, by name."""
    if stack.mounts:
        mount = stack.mounts[0]
        return f"/dev/{mount.device} is mounted on {mount.mountpoint}"
    if stack.swaps:
        return f"it holds the swap space {stack.swaps[0]}"
    if stack.holders:
        holder = stack.holders[0]
        return f"the {holder.kind} device {holder.label} lies on it"
    return None


def opened(array: Device) -> str | None:
    """Who has it open without holding it."""
    device = Path(array.device)
    if loop := loop_over(device):
        return f"the loop device {loop} lies on it"
    if program := program_with(device):
        return f"{program} has it open"
    return None


def not_exclusive(array: Device) -> str | None:
    """Whether anybody has the device, in any mount namespace: then O_EXCL is refused."""
    try:
        os.close(os.open(Path(array.device), os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return "the kernel says that it is in use (mounted, perhaps in a container, or held)"
        return f"it cannot be opened: {error.strerror}"
    return None
