"""What control groups have set for the disks of an array."""

import os

from autotune.system import sysfs
from autotune.system.array import Array

FOLDER = "sys/fs/cgroup"
WEIGHTS = ("io.bfq.weight", "blkio.bfq.weight_device")
"""A line is "8:16 300", in version 1, too; the one that begins with "default" is no disk's."""


def with_bfq_weights(array: Array) -> str | None:
    """The first control group that has a weight for one of the array's disks, by its path, as
    systemd's `IODeviceWeight=` gives it one. Such weights are bfq's own: the kernel forgets them
    with the disk's switch to another scheduler (seen on 6.1)."""
    numbers = set()
    for disk in array.disks:
        block = array.root / "sys/block" / disk
        if "[bfq]" in sysfs.read_or(block / "queue/scheduler", ""):
            numbers.add(sysfs.read_or(block / "dev", ""))
    if not numbers:
        return None
    top = array.root / FOLDER
    for folder, _, files in os.walk(top):
        for name in set(WEIGHTS).intersection(files):
            lines = sysfs.read_or(top / folder / name, "").splitlines()
            if any(line.partition(" ")[0] in numbers for line in lines):
                return os.path.relpath(folder, top)
    return None
