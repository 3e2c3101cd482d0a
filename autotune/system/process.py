"""Whose a process is, and what it may, which need not be what it calls itself. Light."""

import contextlib
import re
from pathlib import Path

from autotune.system import sysfs

SYS_PTRACE, SYS_ADMIN = 19, 21
"""Rights: to look into others' processes, and to change devices (capabilities(7))."""


def stat_words(process: Path) -> list[str]:
    """What the kernel says of a process or thread, from its state on (proc_pid_stat(5)); nothing if
    it is gone. `process`: its folder in /proc."""
    # Its name comes before, and may have anything in it.
    return sysfs.read_or(process / "stat", "").rpartition(")")[2].split()


def real_uid(process: Path) -> int | None:
    """The user who has started what runs there, also with another's rights, as `su` does; None if
    the process is gone. `process`: its folder in /proc, whose own owner may be root all the
    same: that of a program that keeps others from its memory."""
    # Of the name, which comes before, only "\n" is escaped.
    found = re.search(r"^Uid:\t(\d+)", sysfs.read_or(process / "status", ""), re.M)
    return int(found[1]) if found else None


def has_right(process: Path, right: int) -> bool:
    """Whether a process has a right that root has, but in a container or a unit as a rule not: one
    in a user namespace of its own has all, but over nobody outside."""
    with contextlib.suppress(OSError):
        spaces = {(each / "ns/user").readlink() for each in (process, Path("/proc/self"))}
        if len(spaces) > 1:
            return False
    found = re.search(r"^CapEff:\t([0-9a-f]+)", sysfs.read_or(process / "status", ""), re.M)
    return found is not None and bool(int(found[1], 16) >> right & 1)
