"""Which files a setting is in, and what they read under it."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.knobs import by_name, is_of_disks
from autotune.knobs.base import MemberNumber
from autotune.knobs.scheduler import Scheduler
from autotune.problem.setting import Setting, Value
from autotune.system import sysfs
from autotune.system.array import Array

KERNELS = {"sync_speed_min": "1000", "sync_speed_max": "200000", "sync_io_depth": "32"}
"""What the kernel's sysctls say unless somebody sets them."""


def of_disk(root: Path, disk: str, name: str) -> Path:
    """The file of a disk that a knob of disks is in."""
    knob = by_name(name)
    assert isinstance(knob, MemberNumber | Scheduler)
    return root / "sys/block" / disk / knob.file


def texts(array: Array, setting: Setting) -> dict[Path, str]:
    """The files of this array and its disks that a setting is in. What is not there is left out;
    whether it could be set now is not asked: it may have been there before."""
    found = {}
    for name, value in setting.items():
        # After a reshape to another level the array may have no such file any more.
        with contextlib.suppress(AutotuneError, FileNotFoundError):
            if is_of_disks(name):
                found.update(on_own_disks(array, name, value))
            else:
                found.update(
                    {write.path: write.text for write in by_name(name).writes(array, value)}
                )
    return {path: text for path, text in found.items() if path.exists()}


def on_own_disks(array: Array, name: str, value: Value) -> dict[Path, str]:
    """`on_disks` of all disks of an array."""
    return on_disks(array.root, name, value, dict(enumerate(array.disks)), len(array.disks))


def on_disks(
    root: Path, name: str, value: Value, disks: Mapping[int, str], of: int
) -> dict[Path, str]:
    """The files of disks that a knob's value is in, be they there or not. `disks`: names by their
    place among the disks `of` which the value may name one text each."""
    parts = str(value).split(",")
    if len(parts) not in (1, of):
        return {}
    return {of_disk(root, disk, name): parts[n % len(parts)] for n, disk in disks.items()}


def sysctl(array: Array, file: str) -> str:
    """What the sysctl says that a setting of syncs follows where it was not set."""
    limit = array.root / "proc/sys/dev/raid" / file.replace("sync_speed", "speed_limit")
    return sysfs.read_or(limit, KERNELS[file])


def follows_sysctl(array: Array, name: str, value: Value, system: Sequence[str] | None) -> bool:
    """Whether a setting of syncs that was this followed the sysctl, which the profile says in
    `system`. Where that is not known, what reads like the kernel's or the sysctl's is taken for
    it."""
    if name not in KERNELS:
        return False
    if system is not None:
        return name in system
    return str(value) in (KERNELS[name], sysctl(array, name))
