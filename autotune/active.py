"""Which profile is in force on an array: applied until the next reboot, or made to stay."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autotune.array import Array
from autotune.errors import AutotuneError
from autotune.journal import Journal
from autotune.journals import applied_path, applied_profile_path
from autotune.originals import boot_id
from autotune.persist import profile_path
from autotune.profile import Profile, load_profile


@dataclass(frozen=True)
class Active:
    """A profile that is in force, how, and the file that says so."""

    profile: Profile
    how: Literal["applied", "persisted"]
    path: Path


def active(array: Array, state_dir: Path) -> list[Active]:
    """The profiles in force, the one that was applied last first: that one the knobs should read
    as. Raise UsageError if the file of one is not a valid profile."""
    found: list[Active] = []
    if is_applied(array, state_dir):
        path = applied_profile_path(state_dir, array.uuid)
        if path.exists():
            found.append(Active(load_profile(path), "applied", path))
    path = profile_path(array.uuid, array.root)
    if array.uuid and path.exists():
        found.append(Active(load_profile(path), "persisted", path))
    return found


def is_applied(array: Array, state_dir: Path) -> bool:
    """Whether values are applied to stay that this boot has not forgotten."""
    with contextlib.suppress(AutotuneError, OSError):
        record = Journal.load(applied_path(state_dir, array.uuid)).record
        return record.boot == boot_id(array.root)
    return False
