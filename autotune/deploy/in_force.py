"""Which profile is in force on an array: applied until the next reboot, or made to stay."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autotune.deploy.persisted import profile_path
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import Profile
from autotune.safety.applied import applied_profile, is_applied
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_path
from autotune.system import ownership
from autotune.system.array import Array


@dataclass(frozen=True)
class Active:
    """A profile that is in force, how, and the file that says so."""

    profile: Profile
    how: Literal["applied", "persisted"]
    path: Path


def active(array: Array, state_dir: Path, damaged: list[str] | None = None) -> list[Active]:
    """The profiles in force, the one that was applied last first: that one the knobs should read
    as. A file that is not a valid profile, or that others than root can change, is told to
    `damaged`, else UsageError is raised."""
    places: list[tuple[Literal["applied", "persisted"], Path]] = []
    if is_applied(array, state_dir):
        places.append(("applied", applied_profile(state_dir, array.uuid)))
    if array.uuid:
        places.append(("persisted", profile_path(array.uuid, array.root)))
    found: list[Active] = []
    for how, path in places:
        if not path.exists():
            continue
        try:
            ownership.refuse(path, f"The profile {path}")
            found.append(Active(load_profile(path), how, path))
        except UsageError as error:
            text = f"{str(error).rstrip('.')}; {_what_to_do(array, how)}."
            if damaged is None:
                raise UsageError(text) from None
            damaged.append(text)
    return found


def _what_to_do(array: Array, how: Literal["applied", "persisted"]) -> str:
    """With a profile that cannot be used. What is in force must not be taken for the original."""
    if how == "applied":
        return f"correct that, or undo it (`autotune restore {array.device}`) and apply it anew"
    return "correct that, or remove the file, reboot, and apply it anew"


def refuse_damaged(array: Array, state_dir: Path) -> None:
    """Raise RefusalError if a profile in force cannot be used: it alone knows what the array had
    before, and what it has set would be taken for that."""
    damaged: list[str] = []
    active(array, state_dir, damaged)
    damaged += filter(None, [damaged_record(array, state_dir)])
    if damaged:
        raise RefusalError(" ".join(damaged))


def damaged_record(array: Array, state_dir: Path) -> str:
    """Why what is applied could not be undone, its record being damaged; "" if that can be read."""
    try:
        Journal.load(applied_path(state_dir, array.uuid))
    except FileNotFoundError:
        pass
    except AutotuneError as error:
        return str(error)
    return ""
