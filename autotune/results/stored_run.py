"""A run's problem as it lies in the store, read (`tuning.problem_document` writes it).

It holds all that it takes to choose another setting from the stored trials, without the array.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import UsageError
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Figure
from autotune.problem.profile import ProvenOn
from autotune.problem.setting import Setting


@dataclass(frozen=True)
class Recorded:
    """The problem of a stored run.

    `figures` have their ceilings only if the run came so far as to resolve them; `asked` are the
    user's. `moves` are the figures that each knob can move, `ram` the bytes that each value of a
    knob may take.
    """

    name: str
    proven_on: ProvenOn
    workload: str
    figures: tuple[Figure, ...]
    asked: tuple[Ceiling, ...]
    baseline: Setting
    moves: Mapping[str, frozenset[str]]
    ram: Mapping[str, Mapping[str, int]]
    ram_budget_bytes: int

    def ram_bytes(self, setting: Setting) -> int:
        """The memory that a setting of this run may take."""
        return sum(self.ram.get(name, {}).get(str(value), 0) for name, value in setting.items())

    def moved(self, setting: Setting) -> frozenset[str]:
        """The figures that can differ between the setting and the baseline."""
        changed = [name for name, value in setting.items() if value != self.baseline[name]]
        return frozenset().union(*(self.moves[name] for name in changed))


def read(run: int, problem: Mapping[str, Any]) -> Recorded:
    """A stored problem. Raise UsageError if an autotune too old to say all of it wrote it."""
    try:
        array = dict(problem["array"])
        return Recorded(
            array.pop("name"),
            ProvenOn.model_validate(array),
            problem["workload"]["name"],
            tuple(Figure(**figure) for figure in problem["figures"]),
            tuple(Ceiling(**ceiling) for ceiling in problem["ceilings"]),
            problem["baseline"],
            {name: frozenset(knob["moves"]) for name, knob in problem["knobs"].items()},
            {name: _ram(knob) for name, knob in problem["knobs"].items()},
            problem["ram_budget_bytes"],
        )
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"Run {run} was stored by another version of autotune, which did not keep what this "
            "needs; tune the array again."
        ) from None


def _ram(knob: Mapping[str, Any]) -> dict[str, int]:
    values: Iterable[Any] = knob["choices"]
    return {str(value): cost for value, cost in zip(values, knob["ram_bytes"], strict=True)}
