"""What the store keeps of a run beside its trials: one model, written by `tuning.stored_problem`.

It holds all that it takes to choose another setting from the stored trials, without the array.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from autotune.errors import RefusalError, UsageError
from autotune.knobs.profile_file import parse_profile
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Figure
from autotune.problem.profile import Profile, ProvenOn
from autotune.problem.setting import Setting, Value
from autotune.store import RunRecord
from autotune.untrusted import NONSENSE, plain


class _Model(BaseModel):
    # What a later version adds is no fault, but `resume` has to see it.
    model_config = ConfigDict(extra="allow", frozen=True)


class StoredArray(ProvenOn):
    """The array, by its class, and what it was called."""

    name: str

    @property
    def proven_on(self) -> ProvenOn:
        """The class alone."""
        return ProvenOn.model_validate(self.model_dump(exclude={"name"}))


class StoredWorkload(_Model):
    """The workload, as its file has it."""

    name: str
    phases: tuple[dict[str, Any], ...] = ()


class StoredKnob(_Model):
    """A knob of the run: what it may be set to, the bytes that each of these may take, and the
    names of the figures that it can move."""

    choices: tuple[Value, ...]
    ram_bytes: tuple[int, ...]
    moves: tuple[str, ...]


class StoredProblem(_Model):
    """The problem of a stored run.

    `figures` have their ceilings only if the run came so far as to resolve them; `ceilings` are
    the user's. Only what every version stored has no default.
    """

    array: StoredArray
    workload: StoredWorkload
    strategy: str = ""
    given: str = ""
    """The name of what was measured, if nothing was searched."""
    trials: int = 0
    seed: int = 0
    careful: bool = False
    ram_budget_bytes: int
    write_budget_bytes: int | None = None
    written_bytes: int = 0
    destructive: bool = False
    live: str = "none"
    ceilings: tuple[Ceiling, ...]
    baseline: Setting
    knobs: Mapping[str, StoredKnob]
    left_out: tuple[str, ...] = ()
    host: str = ""
    lab: bool = False
    figures: tuple[Figure, ...]

    def document(self) -> dict[str, Any]:
        """As the store takes it."""
        return self.model_dump(mode="json")

    def ram_bytes(self, setting: Setting) -> int:
        """The memory that a setting of this run may take."""
        return sum(
            dict(zip(knob.choices, knob.ram_bytes, strict=True)).get(setting[name], 0)
            for name, knob in self.knobs.items()
            if name in setting
        )

    def moved(self, setting: Setting) -> frozenset[str]:
        """The figures that can differ between the setting and the baseline."""
        changed = [name for name, value in setting.items() if value != self.baseline[name]]
        return frozenset().union(*(self.knobs[name].moves for name in changed))


def read(run: RunRecord) -> StoredProblem:
    """A run's problem. Raise RefusalError if an autotune too old to say all of it stored it."""
    try:
        return StoredProblem.model_validate(run.problem)
    except ValidationError:
        raise RefusalError(
            f"Run {run.id} was stored by another version of autotune, which did not keep what this "
            "needs; tune the array again."
        ) from None


def profile(run: RunRecord) -> Profile | None:
    """The profile that a run ended with; None if nothing was better. Raise RefusalError if it is
    of another version, or no profile."""
    if not run.profile:
        return None
    try:
        return parse_profile(json.dumps(run.profile), f"run {run.id}")
    except UsageError as error:
        raise RefusalError(str(error)) from None


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Around all that is made of stored runs. What is damaged, or of a newer version, may hold
    anything that JSON can, so what trips over it is refused here and not at each place. Raise
    RefusalError."""
    try:
        yield
    except NONSENSE as error:
        raise RefusalError(
            f"What is stored of {what} cannot be understood "
            f"({type(error).__name__}: {plain(str(error)).rstrip('.')}): it is damaged, or a newer "
            "autotune stored it; use that one, or choose another run."
        ) from error
