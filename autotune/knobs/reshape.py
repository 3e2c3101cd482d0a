"""What a reshape, and the mdadm that leads it, does to settings."""

from pathlib import Path

from autotune.system import sysfs
from autotune.system.process import SYS_ADMIN, has_right, real_uid

MIN = "sync_speed_min"
MDADMS_MIN = "200000"
"""What mdadm sets for a reshape that has to make backups; at the end it puts back what it read at
the start (mdadm: Grow.c)."""


def may_come_back(path: Path) -> bool:
    """Whether mdadm may yet put back what a file read when a reshape of its array began, which may
    only be about to begin, or just be over."""
    if path.name != MIN:
        return False
    return is_reshaping(path.parent) or _is_mdadm_growing(path.parents[1].name, path.parents[4])


def _is_mdadm_growing(name: str, root: Path) -> bool:
    """Whether a process of mdadm changes the shape of an array."""
    for process in root.glob("proc/[0-9]*"):
        # Only then: whoever asks for the words of a process waits with it where a fault of its
        # memory hangs, as on a filesystem whose server does not answer.
        if not _is_roots_mdadm(process):
            continue
        _program, *words = sysfs.read_or(process / "cmdline", "").split("\0")
        devices = [word for word in words if word.startswith("/dev/")]
        if any(word.startswith(("--gr", "-G")) for word in words) and any(
            Path(device).resolve().name == name for device in devices
        ):
            return True
    return False


def _is_roots_mdadm(process: Path) -> bool:
    """Whether a process is what it is called, which anybody may choose."""
    if real_uid(process) != 0 or not has_right(process, SYS_ADMIN):
        return False
    if sysfs.read_or(process / "comm", "") != "mdadm":
        return False
    try:
        program = (process / "exe").readlink().name
    except OSError:
        # Not for units without CAP_SYS_PTRACE. `su` and the like have their user's real uid.
        return True
    # So it is told after an upgrade.
    return program.removesuffix(" (deleted)") == "mdadm"


def is_reshaping(md: Path) -> bool:
    """Whether an array is between two shapes, be it that the reshape is paused."""
    return sysfs.read_or(md / "reshape_position", "none") != "none"
