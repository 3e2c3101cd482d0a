"""Profiles and starting points by name: shipped, the site's, and own. Changes nothing.

A starting point is what somebody has published: plain values, each with its source, proven
nowhere. A profile is what a run has proven. Both are candidates for a run, with no special trust.
"""

import contextlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from autotune.deploy.rescale import Plan, plan, plan_values
from autotune.errors import UsageError
from autotune.knobs import by_name
from autotune.knobs.profile_file import impossible, load_profile
from autotune.problem.profile import KnobName, KnobValue, Profile, ShortText, Strict
from autotune.problem.setting import Setting
from autotune.system.array import Array
from autotune.untrusted import MOST_TYPED_BYTES, first_fault, plain, read_text, read_toml

SITE = Path("/etc/autotune/profiles")


class Published(Strict):
    """A value, where it was published, and what is said of it there."""

    value: KnobValue
    source: Annotated[ShortText, Field(min_length=1)]
    says: ShortText = ""


class StartingPoint(Strict):
    """Values to start from on arrays of these levels and media, for this workload."""

    schema_version: Literal[1]
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    summary: ShortText = ""
    levels: Annotated[
        tuple[Literal["raid1", "raid4", "raid5", "raid6", "raid10"], ...], Field(min_length=1)
    ]
    media: Annotated[tuple[Literal["hdd", "ssd", "nvme"], ...], Field(min_length=1)]
    workload: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")] = "balanced"
    knobs: Annotated[dict[KnobName, Published], Field(min_length=1, max_length=40)]

    @model_validator(mode="after")
    def _values_are_possible(self) -> "StartingPoint":
        try:
            for name in self.knobs:
                by_name(name)
        except UsageError as error:
            raise ValueError(str(error).rstrip(".")) from None
        if reason := impossible(self.values):
            raise ValueError(reason.rstrip("."))
        return self

    @property
    def values(self) -> Setting:
        return {name: published.value for name, published in self.knobs.items()}


@dataclass(frozen=True)
class Entry:
    """One thing in the catalogue, and its file."""

    kind: Literal["shipped", "site", "own", "file"]
    path: str
    item: Profile | StartingPoint

    @property
    def name(self) -> str:
        """What it is called on the command line: the file's name without its ending."""
        return Path(self.path).stem


def parse_starting_point(text: str, source: str) -> StartingPoint:
    """A starting point from TOML. Raise UsageError naming `source` and the first fault."""
    try:
        return StartingPoint.model_validate(read_toml(text))
    except ValidationError as error:
        fault = first_fault(error)
    except ValueError as error:
        fault = plain(str(error))
    raise UsageError(f'The starting point "{plain(source)}" is not valid: {fault}.')


def load(path: Path) -> Profile | StartingPoint:
    """What a file holds: a starting point if its name ends in .toml, else a profile. Raise
    UsageError if it cannot be read or is not valid."""
    if path.suffix != ".toml":
        return load_profile(path)
    return parse_starting_point(read_text(path, MOST_TYPED_BYTES, "The file"), str(path))


def entries(state_dir: Path, site: Path | None = None) -> tuple[list[Entry], list[str]]:
    """Everything there is, own profiles with the newest first; and a sentence for each file that
    is not valid. `site` is SITE but in tests."""
    found, faults = [], []
    site = SITE if site is None else site
    shipped = resources.files("autotune.profiles.starting")
    for file in sorted(shipped.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            point = parse_starting_point(file.read_text(), file.name)
            found.append(Entry("shipped", file.name, point))
    own = (path for path in (state_dir / "profiles").glob("*.json"))
    files: list[tuple[Literal["site", "own"], Path]] = [
        *(("site", path) for path in sorted((*site.glob("*.toml"), *site.glob("*.json")))),
        *(("own", path) for path in sorted(own, key=_age)),
    ]
    for kind, path in files:
        try:
            found.append(Entry(kind, str(path), load(path)))
        except UsageError as error:
            faults.append(str(error))
    return found, faults


def _age(path: Path) -> tuple[float, str]:
    # It may be gone since it was listed.
    with contextlib.suppress(OSError):
        return (-path.lstat().st_mtime, path.name)
    return (0.0, path.name)


def find(name_or_path: str, state_dir: Path, site: Path | None = None) -> Profile | StartingPoint:
    """What a path holds, or what has this name; own before the site's before what is shipped. A
    path has a "/" or an ending, so that no file takes the place of a name where a command happens
    to be called. Raise UsageError if there is nothing."""
    path = Path(name_or_path)
    if not name_or_path:
        raise UsageError("Give the name of a profile, or the path of its file.")
    if "/" in name_or_path or path.suffix in (".json", ".toml"):
        return load(path)
    for folder in (state_dir / "profiles", SITE if site is None else site):
        for ending in (".json", ".toml"):
            if (folder / (name_or_path + ending)).exists():
                return load(folder / (name_or_path + ending))
    known = entries(state_dir, site)[0]
    for entry in known:
        if entry.kind == "shipped" and entry.name == name_or_path:
            return entry.item
    # That name has the array and the workload, so several runs may have it.
    meant = [entry.name for entry in known if entry.item.name == name_or_path]
    raise UsageError(
        f'There is no profile file "{plain(name_or_path)}"'
        + (f" (did you mean {' or '.join(meant[:3])}?)" if meant else "")
        + "; `autotune profiles` lists those that there are, or give the path of a file."
    )


def find_profile(name_or_path: str, state_dir: Path, device: str = "DEVICE") -> Profile:
    """The same, of a profile alone. Raise UsageError for a starting point, with the command that
    measures it on the device."""
    item = find(name_or_path, state_dir)
    if isinstance(item, StartingPoint):
        raise UsageError(
            f"{item.name} is a starting point: published values, not proven on any array; "
            f"`autotune import {item.name} --device {device}` measures it before it stays."
        )
    return item


def plan_of(
    item: Profile | StartingPoint, array: Array, budget_bytes: int, member_kib_s: int | None = None
) -> Plan:
    """What it comes to on an array."""
    if isinstance(item, Profile):
        return plan(item, array, budget_bytes, member_kib_s)
    if array.level in item.levels and array.media.value in item.media:
        return plan_values(item.values, array, budget_bytes)
    for_what = f"{', '.join(item.levels)} on {', '.join(item.media)}"
    here = f"{array.level} on {array.media.value}"
    return Plan((), (f"It is for {for_what}, and {array.device} is {here}.",), ())
