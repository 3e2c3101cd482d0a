"""What the store keeps of a run beside its trials: one model, written by `tuning.problem_document`.

It holds all that it takes to choose another setting from the stored trials, without the array.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from autotune.errors import UsageError
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Figure
from autotune.problem.profile import Profile, ProvenOn
from autotune.problem.setting import Setting, Value
from autotune.store import RunRecord


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
    """A run's problem. Raise UsageError if an autotune too old to say all of it stored it."""
    try:
        return StoredProblem.model_validate(run.problem)
    except ValidationError:
        raise UsageError(
            f"Run {run.id} was stored by another version of autotune, which did not keep what this "
            "needs; tune the array again."
        ) from None


def profile(run: RunRecord) -> Profile | None:
    """The profile that a run ended with; None if nothing was better."""
    return Profile.model_validate(run.profile) if run.profile else None
