"""Who uses a block device without holding it: programs that have it open, and loop devices.

O_EXCL is refused only if somebody else asked for exclusive use. Virtual machines, iSCSI targets
and databases on raw devices do not, and neither does a loop device.
"""

import os
import stat
import time
from pathlib import Path

from autotune.system import sysfs

PATIENCE_S = 3.0
"""udev opens a device for moments."""


def loop_over(device: Path, root: Path = Path("/")) -> str | None:
    """The loop device that lies on a block device, by name."""
    for file in sorted((root / "sys/block").glob("loop*/loop/backing_file")):
        backing = sysfs.read_or(file, "")
        if backing and _number(Path(backing)) == _number(device):
            return file.parents[1].name
    return None


def program_with(device: Path, patience_s: float = PATIENCE_S) -> str | None:
    """A program that keeps a block device open, under whatever name it opened it, for longer than
    `patience_s`."""
    deadline = time.monotonic() + patience_s
    while (found := _one_with(_number(device))) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _one_with(number: int | None) -> str | None:
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            opened = list((process / "fd").iterdir())
        except OSError:
            continue
        if any(_number(file) == number for file in opened):
            return f"{sysfs.read_or(process / 'comm', 'a program')} (process {process.name})"
    return None


def _number(path: Path) -> int | None:
    """The number of the block device behind a path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_rdev if stat.S_ISBLK(status.st_mode) else None
