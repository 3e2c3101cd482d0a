"""How busy disks are, by the kernel's counters."""

from pathlib import Path

from autotune.system import sysfs

BUSY = 0.10
"""A disk that has a request in flight for less of the time than this has little to do."""
_BUSY_MS = 9
"""The field of a disk's `stat` file with the time, in ms, in which it had a request in flight
(kernel Documentation/block/stat.rst, io_ticks)."""


def busy_ms(disk: str, root: Path = Path("/")) -> int:
    """For how many ms, in all, a disk has had a request in flight; 0 if that cannot be read."""
    fields = sysfs.read_or(root / "sys/block" / disk / "stat", "").split()
    return int(fields[_BUSY_MS]) if len(fields) > _BUSY_MS else 0
