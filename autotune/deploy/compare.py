"""Two settings side by side: of profiles, runs, starting points, or an array as it is. Changes
nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.deploy import catalogue
from autotune.deploy.catalogue import StartingPoint
from autotune.errors import RefusalError, UsageError
from autotune.export.steps import steps
from autotune.knobs import ALL, for_array, read_setting
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, Value
from autotune.results import stored_run
from autotune.system.array import find_array


@dataclass(frozen=True)
class Side:
    """What is compared: its name, its values, and what class of array they are for; nothing if
    they are an array's own, of which only what the other side sets is looked at."""

    name: str
    values: Setting
    of: Mapping[str, str]
    is_array: bool = False
    fault: str | None = None
    """Why it could be applied to no array: the first knob or value that makes no sense."""


@dataclass(frozen=True)
class Row:
    """One line: None where a side does not have it."""

    what: str
    a: Value | None
    b: Value | None

    @property
    def same(self) -> bool:
        if self.what in ("level", "media") and self.a is not None and self.b is not None:
            # A starting point names all that it is for.
            return not {*str(self.a).split()}.isdisjoint(str(self.b).split())
        return self.a == self.b


def side(text: str, state_dir: Path) -> Side:
    """What a word of the command line stands for: an array's device, the number of a run, the
    path of a profile, or a name in the catalogue. Raise UsageError if it is none of these,
    RefusalError if the run has no profile."""
    if text.startswith("/dev/"):
        array = find_array(text)
        return Side(
            array.device,
            read_setting(array, for_array(array, ALL)),
            {
                "level": array.level,
                "members": str(array.raid_disks),
                "chunk_kib": str(array.chunk_bytes // 1024),
                "media": array.media.value,
                "kernel": array.kernel,
            },
            is_array=True,
        )
    if re.fullmatch(r"[0-9]{1,9}", text):
        return _of_profile(f"run {text}", _run_profile(int(text), state_dir))
    item = catalogue.find(text, state_dir)
    if isinstance(item, StartingPoint):
        of = {"level": " ".join(item.levels), "media": " ".join(item.media)}
        return Side(item.name, item.values, {**of, "workload": item.workload})
    return _of_profile(item.name, item)


def _of_profile(name: str, profile: Profile) -> Side:
    of = profile.proven_on.model_dump(exclude={"uuid"}, exclude_none=True)
    of["workload"] = profile.workload
    fault = None
    try:
        steps(profile)
    except UsageError as error:
        fault = str(error)
    return Side(name, profile.knobs, {k: str(v) for k, v in of.items()}, fault=fault)


def _run_profile(number: int, state_dir: Path) -> Profile:
    # Loads SQLAlchemy, which only a run's number needs.
    from autotune.store.database import Store  # noqa: PLC0415

    store = Store.existing(state_dir)
    if store is None:
        raise UsageError(f"There is no run {number}; nothing has been run with {state_dir} yet.")
    profile = stored_run.profile(store.run(number))
    if profile is None:
        raise RefusalError(
            f"Run {number} has no profile: it kept the original settings; `autotune history "
            f"{number}` shows its trials."
        )
    return profile


def knob_rows(a: Side, b: Side) -> list[Row]:
    """The knobs that either sets; beside a profile, of an array only those that it sets."""
    names = dict.fromkeys(
        [*(() if a.is_array and not b.is_array else a.values), *(() if b.is_array else b.values)]
    )
    return [Row(name, a.values.get(name), b.values.get(name)) for name in names]


def class_rows(a: Side, b: Side) -> list[Row]:
    """What the two are for, where both say so."""
    return [Row(key, a.of[key], b.of[key]) for key in a.of if key in b.of]
