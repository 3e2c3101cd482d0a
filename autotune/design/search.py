"""The search of a design: the default first and now and then again, each level once, and then what
the strategy asks for."""

import dataclasses
import math
from collections.abc import Sequence

from autotune.design.shape import Shape
from autotune.design.space import Space
from autotune.design.trials import BASELINE, Trials
from autotune.errors import MeasurementError, RefusalError
from autotune.measure.workload import Phase
from autotune.problem import ceilings
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, gain, p_hold
from autotune.problem.setting import setting_key
from autotune.problem.strategy import Problem, StrategyFactory
from autotune.problem.trial import Status
from autotune.quantities import show_seconds
from autotune.results.proof import mean, original
from autotune.tuning.preparation import BASELINE_EVERY, BASELINE_TRIALS
from autotune.tuning.strategy_input import informed, trials_without_drift

ROUNDS = 2
"""How often each finalist is measured in the proof at least: A B … B A."""
CHALLENGERS = 3
"""How many finalists there are beside the default, where there is time for them."""
MOST_TRIALS = 60
LEAST_TRIALS = BASELINE_TRIALS + 1 + 2 * ROUNDS
"""The baseline, one of the search, and a proof."""


def limited(figures: Sequence[Figure], asked: Sequence[Ceiling], default: Figures) -> list[Figure]:
    """The figures with the ceilings that were asked for, and no others: nobody uses these disks
    yet, whose latency could become worse. Raise RefusalError as `ceilings.resolve` does."""
    resolved = ceilings.resolve(figures, asked, default)
    return [dataclasses.replace(figure, ratio=None) for figure in resolved]


class Search:
    """What was found of a space; `phases` are those of the workload."""

    def __init__(self, space: Space, trials: Trials, phases: tuple[Phase, ...], seed: int) -> None:
        self._space, self._trials, self._phases, self._seed = space, trials, phases, seed
        self.stopped = ""
        """Why it ended."""
        self._recommended: Shape | None = None

    def measure_default(self, asked: tuple[Ceiling, ...]) -> None:
        """Measure what mdadm makes by itself, more than once, and resolve the ceilings by it.

        Raise RefusalError if there is no time for anything else, or no shape can hold a ceiling.
        """
        trials = self._trials
        trials.warm_up(self._space.default)
        for done in range(1, BASELINE_TRIALS + 1):
            record = trials.run(BASELINE, self._space.default)
            if record.status is not Status.COMPLETE:
                raise RefusalError(record.reason)
            limited(trials.figures, asked, record.figures)
            least_s = trials.seconds * (LEAST_TRIALS - done)
            if trials.left_s < least_s:
                lacking = show_seconds(60 * math.ceil((least_s - trials.left_s) / 60))
                raise RefusalError(
                    f"A trial takes {show_seconds(trials.seconds)} here, so there is no time to "
                    f"try and prove anything; allow {lacking} more (--time)."
                )
        before = self.default_figures
        missing = [f.name for f in trials.figures if f.weight > 0 and f.name not in before]
        if missing:
            raise MeasurementError(
                f"The default gave no figure for {', '.join(missing)}; the phase is too short for "
                "these disks: raise its max_seconds in the workload."
            )
        trials.set_ceilings(limited(trials.figures, asked, before), before)

    @property
    def default_figures(self) -> Figures:
        return original(self._trials.records)

    def run(self, factory: StrategyFactory) -> None:
        """Try shapes until the strategy sees no more worth it, or the rest of the time is the
        proof's."""
        trials = self._trials
        reserve_s = self._reserve_s()
        for shape in self._space.first:
            if trials.left_s - reserve_s > trials.seconds:
                trials.run("search", shape, reuse=True)
        budget = int((trials.left_s - reserve_s) / trials.seconds) + len(self._space.first)
        problem = self._problem(max(1, min(budget, MOST_TRIALS)))
        strategy = informed(factory, problem, trials)
        while True:
            if trials.left_s - reserve_s < trials.seconds:
                self.stopped = "the rest of the time is for the proof (--time)"
                return
            if self._since_default() >= BASELINE_EVERY:
                trials.run(BASELINE, self._space.default)
                strategy = informed(factory, problem, trials)
                continue
            setting = strategy.ask()
            if setting is None:
                self.stopped = "no other shape promises enough to be worth a trial"
                return
            strategy.tell(trials.run("search", Shape.of(setting), reuse=True).trial)
            self._recommended = Shape.of(strategy.recommend().setting)

    def finalists(self) -> list[Shape]:
        """What is worth a proof, beside the default: what the strategy recommends, the best seen of
        each level, and the best of the rest; as many as there is time for."""
        before = self.default_figures
        seen: dict[Shape, list[Figures]] = {}
        for trial in trials_without_drift(self._trials):
            shape = Shape.of(trial.setting)
            if trial.status is Status.COMPLETE and shape != self._space.default:
                seen.setdefault(shape, []).append(trial.figures)

        def worth(shape: Shape) -> tuple[bool, float]:
            shown = mean(seen[shape])
            found = gain(self._trials.figures, shown, before)
            holds = p_hold(self._trials.figures, shown, before) >= 0.5
            return holds, found.value if found else 0.0

        order = sorted(seen, key=worth, reverse=True)
        first = self._recommended
        # Of its level, that one is what is measured in turn.
        levels = {first.level: first} if first is not None else {}
        for shape in order:
            levels.setdefault(shape.level, shape)
        chosen = dict.fromkeys(
            shape
            for shape in (first, *levels.values(), *order)
            if shape is not None and shape != self._space.default
        )
        room = int(self._trials.left_s / (ROUNDS * self._trials.seconds)) - 1
        return list(chosen)[: max(1, min(room, CHALLENGERS))]

    def _reserve_s(self) -> float:
        """What is kept for the proof: for all challengers, if that leaves half to the search."""
        each_s = ROUNDS * self._trials.seconds
        wanted_s = each_s * (1 + CHALLENGERS)
        return wanted_s if wanted_s < self._trials.left_s / 2 else each_s * 2

    def _problem(self, budget: int) -> Problem:
        return Problem(
            self._space.dimensions(self._phases),
            tuple(self._trials.figures),
            self._space.default.setting,
            self._space.allowed,
            budget,
            self._seed,
            hints=self._space.hints,
            seconds=dict(self._trials.phase_seconds),
            carried=True,
        )

    def _since_default(self) -> int:
        """The trials since the default was measured."""
        default = setting_key(self._space.default.setting)
        keys = [setting_key(record.requested) for record in reversed(self._trials.records)]
        return keys.index(default) if default in keys else len(keys)
