"""Which files a setting is in, and what they read under it."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.knobs import Knob, by_name, is_of_disks
from autotune.knobs.base import MemberNumber
from autotune.knobs.scheduler import Scheduler
from autotune.problem.setting import Setting, Value
from autotune.system import sysfs
from autotune.system.array import Array

KERNELS = {"sync_speed_min": "1000", "sync_speed_max": "200000"}
"""What the kernel's sysctls say unless somebody sets them."""


def of_disk(root: Path, disk: str, name: str) -> Path:
    """The file of a disk that a knob of disks is in."""
    knob = by_name(name)
    assert isinstance(knob, MemberNumber | Scheduler)
    return root / "sys/block" / disk / knob.file


def texts(array: Array, setting: Setting) -> dict[Path, str]:
    """The files of this array and its disks that a setting is in. What is not there, or cannot be
    so here, is left out."""
    found = {}
    for name, value in setting.items():
        with contextlib.suppress(AutotuneError, OSError):
            for write in _writes(array, by_name(name), value):
                # What comes back with a scheduler has no word of its own here.
                if write.path.exists() and (write.path.name == name or not is_of_disks(name)):
                    found[write.path] = write.text
    return found


def _writes(array: Array, knob: Knob, value: Value) -> list[sysfs.Write]:
    if isinstance(knob, MemberNumber) and isinstance(value, str):
        # Disks that differ, which is no setting.
        paths = knob.paths(array)[: len(array.disks)]
        return [sysfs.Write(p, text) for p, text in zip(paths, value.split(","), strict=True)]
    return knob.writes(array, value) if knob.valid(array, value) is None else []


def sysctl(array: Array, file: str) -> str:
    """What the sysctl says that a sync speed follows where it was not set."""
    limit = array.root / "proc/sys/dev/raid" / file.replace("sync_speed", "speed_limit")
    return sysfs.read_or(limit, KERNELS[file])


def follows_sysctl(array: Array, name: str, value: Value, system: Sequence[str] | None) -> bool:
    """Whether a sync speed that was this followed the sysctl, which the profile says in `system`.
    Where that is not known, what reads like the kernel's or the sysctl's is taken for it."""
    if name not in KERNELS:
        return False
    if system is not None:
        return name in system
    return str(value) in (KERNELS[name], sysctl(array, name))
