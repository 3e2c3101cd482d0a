"""The gate before writes to a raw array, or to blank disks: `--destructive DEVICE` must pass all of
it.

fio's own guard compares paths with /etc/mtab, and ends with exit status 0 when it trips; through
a symlink or a dm device on top it wrote, and destroyed data (MD_FACTS §6). So this one asks the
kernel, by opening the device exclusively, and looks at what is on it.
"""

import errno
import os
import signal
import subprocess
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.system.array import Array
from autotune.system.blockdev import Device
from autotune.system.device_users import loop_over, program_with
from autotune.system.programs import find
from autotune.system.stack import Stack, read_stack
from autotune.untrusted import plain

BLKID_TIMEOUT_S = 30
NOTHING_FOUND, AMBIVALENT = 2, 8
EDGE_BYTES = 64 * 1024
BCACHEFS_AT = 4096 + 24
BCACHEFS = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
"""`BCHFS_MAGIC` in a superblock in sector 8 (kernel fs/bcachefs/bcachefs_format.h, 6.7)."""
GPT = b"EFI PART"
"""The start of a GPT's header; its copy is in the last sector (UEFI 2.10, 5.3.2)."""


def check_named_twice(array: Array, named: str) -> None:
    """Raise UsageError unless `named` is the array's device, symlinks resolved."""
    if os.path.realpath(named) != os.path.realpath(array.device):
        raise UsageError(
            f"--destructive names {named}, but the array to tune is {array.device}; "
            "name that one twice if everything on it may be lost."
        )


def refuse_if_used(array: Device) -> None:
    """Raise RefusalError if anything at all is, or may be, on the raw device."""
    reason = users(array) or signature(array)
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


def signature(array: Device) -> str | None:
    """A filesystem, partition table or other signature on the raw device."""
    try:
        with Path(array.device).open("rb", buffering=0) as file:
            start = file.read(EDGE_BYTES)
            file.seek(-EDGE_BYTES, os.SEEK_END)
            end = file.read(EDGE_BYTES)
    except OSError as error:
        return f"it cannot be read ({error.strerror}), so it cannot be seen what is on it"
    return _known_to_blkid(array) or unknown_to_blkid(start, end)


def _known_to_blkid(array: Device) -> str | None:
    blkid = find("blkid")
    if blkid is None:
        return "blkid is missing, so it cannot be seen what is on it (package util-linux)"
    command = (blkid, "--probe", "--output", "export", array.device)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=BLKID_TIMEOUT_S,
            check=False,
            # Ctrl-C is for autotune to handle: a blkid that it ends could tell nothing.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"blkid did not answer within {BLKID_TIMEOUT_S} s"
    if done.returncode == NOTHING_FOUND and not done.stdout.strip():
        return None
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if "PTTYPE" in found:
        return f"it has a partition table ({found['PTTYPE']})"
    if "TYPE" in found:
        return f"it has a signature of {found['TYPE']} (`wipefs -a` removes it, and the data)"
    return f"blkid cannot tell what is on it ({_why(done)})"


def _why(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == AMBIVALENT:
        return "it has signatures of more than one kind"
    if done.returncode < 0:
        return f"{signal.Signals(-done.returncode).name} has ended it"
    said = done.stderr.strip().splitlines()
    return f"exit status {done.returncode}" + (f": {plain(said[-1])}" if said else "")


def unknown_to_blkid(start: bytes, end: bytes) -> str | None:
    """What blkid 2.38 does not see: bcachefs, and a GPT of which only the copy is left."""
    if start[BCACHEFS_AT:].startswith(BCACHEFS):
        return "it has a signature of bcachefs"
    if any(end[-sector:].startswith(GPT) for sector in (512, 4096)):
        return "it has the copy of a partition table (gpt) at its end"
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
