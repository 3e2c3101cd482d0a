"""Who uses a block device without holding it: programs that have it open, and loop devices.

O_EXCL is refused only if somebody else asked for exclusive use. Virtual machines, iSCSI targets
and databases on raw devices do not, and neither does a loop device.
"""

import os
import re
import stat
import time
from pathlib import Path

from autotune.system import sysfs

PATIENCE_S = 3.0
"""udev opens a device for moments."""
AGAIN_S = 0.5


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


def writer_to(device: Path) -> str | None:
    """A program that has a block device open for writing, but for this process and what it has
    started; one that only opens it for a moment, as mdadm does, is none."""
    number = _number(device)
    found = _one_with(number, writes=True)
    if found:
        time.sleep(AGAIN_S)
    return found and _one_with(number, writes=True)


def _one_with(number: int | None, writes: bool = False) -> str | None:
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            opened = [file for file in (process / "fd").iterdir() if _number(file) == number]
        except OSError:
            continue
        if writes and (not any(map(_for_writing, opened)) or _is_below_us(int(process.name))):
            continue
        if opened:
            return f"{sysfs.read_or(process / 'comm', 'a program')} (process {process.name})"
    return None


def _for_writing(file: Path) -> bool:
    about = sysfs.read_or(file.parents[1] / "fdinfo" / file.name, "")
    found = re.search(r"^flags:\s+([0-7]+)", about, re.M)
    return found is not None and int(found[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _is_below_us(pid: int) -> bool:
    """Whether this process has started another one, or what started that."""
    while pid > 1 and pid != os.getpid():
        # "PID (name) state parent", and a name may have anything in it.
        words = sysfs.read_or(Path(f"/proc/{pid}/stat"), "").rpartition(")")[2].split()
        pid = int(words[1]) if len(words) > 1 else 0
    return pid == os.getpid()


def _number(path: Path) -> int | None:
    """The number of the block device behind a path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_rdev if stat.S_ISBLK(status.st_mode) else None
