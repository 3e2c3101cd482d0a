"""What a strategy without a model has seen, and the one rule by which it recommends."""

import math
from collections.abc import Sequence

from autotune.problem import objective
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Status, Trial

SURE = 0.8
"""The least probability of being better than the baseline for leaving it."""


class Observed:
    """The trials told, pooled by setting."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._baseline = setting_key(problem.baseline)
        self._settings: dict[tuple[tuple[str, object], ...], Setting] = {}
        self._seen: dict[tuple[tuple[str, object], ...], list[Trial]] = {}
        self._spent: set[tuple[tuple[str, object], ...]] = set()

    def add(self, trial: Trial) -> None:
        key = setting_key(trial.setting)
        self._settings[key] = dict(trial.setting)
        self._spent.add(key)
        if trial.status in (Status.COMPLETE, Status.ABORTED):
            self._seen.setdefault(key, []).append(trial)

    def __len__(self) -> int:
        """How many different settings were tried."""
        return len(self._spent)

    def tried(self, setting: Setting) -> bool:
        """Whether a trial of the setting was told, whatever came of it."""
        return setting_key(setting) in self._spent

    def figures(self, setting: Setting) -> dict[str, Estimate]:
        """The setting's figures, each pooled over its trials; empty if nothing is known."""
        return pooled(self._seen.get(setting_key(setting), []))

    def gain(self, setting: Setting) -> Estimate | None:
        """The observed objective of the setting, 1.0 as the baseline; None if not known."""
        baseline = self.figures(self._problem.baseline)
        return objective.gain(self._problem.figures, self.figures(setting), baseline)

    def p_hold(self, setting: Setting) -> float:
        baseline = self.figures(self._problem.baseline)
        return objective.p_hold(self._problem.figures, self.figures(setting), baseline)

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        """By the models of the default strategy: nothing simpler tells changes apart."""
        # Takes a second, and only a run that has found something needs it.
        from autotune.strategies.surrogate import importance  # noqa: PLC0415

        return importance.weigh(self._problem, trials, setting, doubtful)

    def recommend(self) -> Recommendation:
        """The greatest P(hold) × improvement among the settings that were measured in full and
        are probably better than the baseline; else the baseline.

        Where the baseline itself does not hold, its performance is not the mark to beat: what
        holds is worth its whole gain.
        """
        problem = self._problem
        base_holds = self.p_hold(problem.baseline)
        best = Recommendation(dict(problem.baseline), Estimate(1.0, 0.0), base_holds)
        best_worth = 0.0
        mark = problem.proven or (1.0 if base_holds >= 0.5 else 0.0)
        for key in self._seen:
            setting = self._settings[key]
            estimate = self.gain(setting)
            if key == self._baseline or estimate is None or not problem.allowed(setting):
                continue
            holds = self.p_hold(setting)
            better = probability_above_one(estimate)
            worth = holds * (estimate.value - mark)
            if worth > best_worth and (better >= SURE or base_holds < 0.5):
                best, best_worth = Recommendation(setting, estimate, holds), worth
        return best


def pooled(trials: list[Trial]) -> dict[str, Estimate]:
    """Each figure's mean on the log scale, with the spread of that mean.

    The same value with the same spread again is the same measurement, carried over: it counts
    once.
    """
    values: dict[str, dict[Estimate, None]] = {}
    for trial in trials:
        for name, estimate in trial.figures.items():
            values.setdefault(name, {})[estimate] = None
    return {name: _mean(list(estimates)) for name, estimates in values.items()}


def _mean(estimates: list[Estimate]) -> Estimate:
    count = len(estimates)
    log = sum(math.log(estimate.value) for estimate in estimates) / count
    variance = sum(estimate.spread**2 for estimate in estimates) / count**2
    return Estimate(math.exp(log), math.sqrt(variance))


def probability_above_one(estimate: Estimate) -> float:
    """The probability that a log-normal estimate is greater than 1."""
    log = math.log(estimate.value)
    if estimate.spread == 0:
        return 1.0 if log > 0 else 0.0
    return 0.5 * math.erfc(-log / (estimate.spread * math.sqrt(2)))
