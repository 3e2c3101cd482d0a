"""The search's vocabulary: the space, the problem, and the Strategy protocol.

Pure: no file, no process. Settings and values are plain Python (`int`, `str`), never numpy's.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

Value: TypeAlias = int | str
Setting: TypeAlias = Mapping[str, Value]
"""A value for each knob, by the knob's name."""


def setting_key(setting: Setting) -> tuple[tuple[str, Value], ...]:
    """A hashable form of a setting: equal settings have equal keys."""
    return tuple(sorted(setting.items()))


@dataclass(frozen=True)
class Dimension:
    """One knob's axis of the space.

    `choices` are all values that may be tried: ascending integers if `ordered` (a ladder,
    usually of equal ratios, so distances are meant on a log scale), else names. The baseline's
    value is always among them. `moves` names the figures that the knob can move; every other
    figure is known not to depend on it.
    """

    knob: str
    choices: tuple[Value, ...]
    ordered: bool
    moves: frozenset[str]


@dataclass(frozen=True)
class Figure:
    """One measured quantity, as "phase.quantity": "write.throughput", "resync.p99".

    Throughputs are in bytes/s (higher is better), latencies in ns (lower is better). `weight` is
    the exponent in the objective (0: not in it). `ceiling` is the latency limit in ns, if any.
    """

    name: str
    phase: str
    kind: Literal["throughput", "latency"]
    weight: float = 0.0
    ceiling: float | None = None


SPREADS_95 = 2.36
"""So many spreads to each side hold 95 %: Student's t for a spread that is known from eight
batches of a measurement, as most are."""


@dataclass(frozen=True)
class Estimate:
    """A positive value and its spread: the standard deviation of its natural logarithm."""

    value: float
    spread: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the value."""
        factor = math.exp(SPREADS_95 * self.spread)
        return self.value / factor, self.value * factor


class Status(StrEnum):
    COMPLETE = "complete"
    ABORTED = "aborted"
    """Ended early by a ceiling or the watch; the figures are what was learnt until then."""
    FAILED = "failed"
    """The measurement broke; says nothing of the setting."""
    INFEASIBLE = "infeasible"
    """The kernel did not take the value."""


@dataclass(frozen=True)
class Trial:
    """One setting applied and measured."""

    setting: Setting
    status: Status
    figures: Mapping[str, Estimate]


@dataclass(frozen=True)
class Earlier:
    """What a trial of an earlier run showed, relative to the baseline's figures then (1.0).
    `doubt`: how far, in logs, its effect may have moved since."""

    setting: Setting
    figures: Mapping[str, Estimate]
    doubt: float


@dataclass(frozen=True)
class Problem:
    """What a strategy is to solve.

    The objective is the weighted geometric mean of the throughput figures relative to the
    baseline's, under the figures' ceilings. `allowed` is the exact filter (RAM budget, relations
    between knobs): a setting that it refuses is never proposed. `hints` are allowed settings
    worth a look (kernel defaults, published rules of thumb), with no special trust. `trials` is
    the budget of the search, without the baseline's and the confirming ones. `seconds` is what
    measuring each phase takes. `careful`: try only what probably holds its ceilings. `earlier`:
    trials of earlier runs, as weaker evidence; no answer may rest on them alone. `carried`: whether
    a phase that was measured at a setting's values is not measured again, but for a setting of
    which all phases were.
    """

    dimensions: tuple[Dimension, ...]
    figures: tuple[Figure, ...]
    baseline: Setting
    allowed: Callable[[Setting], bool]
    trials: int
    seed: int
    careful: bool = False
    hints: tuple[Setting, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    earlier: tuple[Earlier, ...] = ()
    carried: bool = False


@dataclass(frozen=True)
class Recommendation:
    """The setting to confirm: `gain` is the expected objective (1.0: as the baseline) with its
    spread, `p_hold` the probability that every ceiling holds."""

    setting: Setting
    gain: Estimate
    p_hold: float


class Strategy(Protocol):
    """What proposes the next setting. Built by `factory(problem)`, found by entry point in the
    group "autotune.strategies". Deterministic for a problem's seed and the trials told."""

    def ask(self) -> Setting | None:
        """The next setting to try, or None when another trial is not worth its time.

        Always a value from `choices` for every dimension, and `allowed`.
        """

    def tell(self, trial: Trial) -> None:
        """Learn from a trial, whoever proposed it. The baseline's trials come first; a setting
        may come again, with its own measurement."""

    def recommend(self) -> Recommendation:
        """The best setting to confirm; the baseline when nothing is better."""


StrategyFactory: TypeAlias = Callable[[Problem], Strategy]
