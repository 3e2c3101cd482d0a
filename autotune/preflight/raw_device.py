"""The gate before writes to a raw array, or to blank disks: `--destructive DEVICE` must pass all of
it.

fio's own guard compares paths with /etc/mtab, and ends with exit status 0 when it trips; through
a symlink or a dm device on top it wrote, and destroyed data (MD_FACTS §6). So this one asks the
kernel, by opening the device exclusively, and looks at what is on it.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.system.array import Array
from autotune.system.blockdev import Device, kernel_name
from autotune.system.device_users import kernel_user, program_with, writer_to
from autotune.system.raw_space import against_writing, harm
from autotune.system.signature import signature
from autotune.system.stack import Stack, holders, read_stack

EACH_S = 3.0
SELDOM = 20


def check_named_twice(array: Array, named: str) -> None:
    """Raise UsageError unless `named` is the array's device, symlinks resolved."""
    if os.path.realpath(named) != os.path.realpath(array.device):
        raise UsageError(
            f"--destructive names {named}, but the array to tune is {array.device}; "
            "name that one twice if everything on it may be lost."
        )


def refuse_if_used(array: Device) -> None:
    """Raise RefusalError if anything at all is, or may be, on the raw device."""
    _refuse(array, against(array) or signature(array.device))


def refuse_if_not_blank(array: Device) -> None:
    """The same of a device that this process holds, so that nobody else can come to."""
    _refuse(array, opened(array) or signature(array.device))


@contextmanager
def held(array: Device) -> Iterator[int]:
    """A descriptor of the device, held so that nobody can mount it or make a filesystem meanwhile.

    Raise RefusalError if its name leads to another device."""
    descriptor = os.open(array.device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    try:
        if kernel_name(f"/proc/self/fd/{descriptor}", array.root) != array.name:
            raise RefusalError(f"{array.device} is another device than {array.name} by now.")
        yield descriptor
    finally:
        os.close(descriptor)


class Newcomers:
    """Who comes to use a raw device while a run writes to it. The run holds it, which keeps mounts
    and mkfs from it, but nobody who does not ask, such as `cat` or a virtual machine; nor a backup
    that takes a snapshot of what it lies on. Call it for what ends the run."""

    def __init__(self, array: Device) -> None:
        self._array = array
        self.next_s = 0.0

    def __call__(self) -> str | None:
        began_s, device = time.monotonic(), Path(self._array.device)
        if began_s < self.next_s:
            return None
        found = writer_to(device)
        found = f"{found} has {device} open for writing" if found else None
        if user := kernel_user(device, self._array.root):
            found = f"{user} lies on {device}"
        # Once the kernel knows of one, nobody has the device open.
        above = holders(self._array.name, self._array.root)
        if parts := [holder.label for holder in above if holder.kind == "partition"]:
            found = f"the partition {parts[0]} lies on {device}"
        if not found and (why := harm(self._array.name, self._array.root)):
            found = f"{device} cannot be written to any more without harm ({why})"
        now_s = time.monotonic()
        # Where there are many programs, that takes its time, and this one measures.
        self.next_s = now_s + max(EACH_S, SELDOM * (now_s - began_s))
        return f"{found}, so nothing more is written to it" if found else None


def _refuse(array: Device, reason: str | None) -> None:
    if reason:
        raise RefusalError(f"{array.device} is not written to: {reason}.")


def against(array: Device) -> str | None:
    """Why the device is not written to, whatever is on it: who uses it, or what it lies on."""
    return users(array) or against_writing([array.name], array.root)


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
    if user := kernel_user(device):
        return f"{user} lies on it"
    if program := program_with(device):
        return f"{program} has it open"
    return None


def is_claimed(array: Device) -> bool:
    """Whether anybody has it to himself, seen from here or not, such as a mount in a container."""
    return _exclusive_errno(array) == errno.EBUSY


def not_exclusive(array: Device) -> str | None:
    """Whether anybody has the device, in any mount namespace: then O_EXCL is refused."""
    number = _exclusive_errno(array)
    if number == errno.EBUSY:
        # Of those, some hold it all the same.
        if user := kernel_user(Path(array.device)):
            return f"{user} lies on it"
        return "the kernel says that it is in use (mounted, perhaps in a container, or held)"
    return f"it cannot be opened: {os.strerror(number)}" if number else None


def _exclusive_errno(array: Device) -> int:
    """What opening it exclusively fails with; 0 if it does not."""
    try:
        os.close(os.open(Path(array.device), os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        return error.errno or errno.EIO
    return 0
