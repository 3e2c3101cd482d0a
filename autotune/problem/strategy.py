"""What a strategy is to solve, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.trial import Earlier, Trial


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
    which all phases were. `proven`: the objective of a setting that was proven already, so that
    only a greater one is worth a proof; None if there is none.
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
    proven: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """The setting to confirm: `gain` is the expected objective (1.0: as the baseline) with its
    spread, `p_hold` the probability that every ceiling holds."""

    setting: Setting
    gain: Estimate
    p_hold: float


@dataclass(frozen=True)
class KnobShare:
    """What a knob's change brought: a factor of the gain, with its spread; `needed` is False if
    the knob can go back to the baseline's value at no loss, together with the others so marked."""

    knob: str
    before: Value
    after: Value
    gain: Estimate
    needed: bool


@dataclass(frozen=True)
class Weighed:
    """The changes of a setting, the greatest share first, and the expected loss if all that is not
    `needed` goes back: of the log gain, or of P(hold)."""

    shares: tuple[KnobShare, ...]
    loss: float


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

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        """What each change of a setting brings, as all `trials` together show it. With `doubtful`,
        changes that only probably bring something are needed too."""


StrategyFactory: TypeAlias = Callable[[Problem], Strategy]
