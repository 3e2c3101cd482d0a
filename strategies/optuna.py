"""Optuna's tree-structured Parzen estimator with constraints: a rival, and an optional extra."""

import math
import random
from collections.abc import Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Status, Trial
from autotune.strategies._lattice import Lattice
from autotune.strategies._observed import Observed

RETRIES = 50
"""Draws that the exact filter may refuse before any allowed setting is taken."""
STARTUP = 5
"""Random trials before the estimator; Optuna's own default of 10 is most of a small budget."""


class OptunaTPE:
    """Ladders are integers, names are categories; the objective is the log of the gain, and each
    ceiling a constraint: the log of the latency over it, which is to be at most 0."""

    def __init__(self, problem: Problem) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._problem = problem
        self._lattice = Lattice(problem)
        self._observed = Observed(problem)
        self._worst = 0.0
        self._distributions: dict[str, BaseDistribution] = {}
        for dimension in problem.dimensions:
            last = len(dimension.choices) - 1
            if last > 0:
                self._distributions[dimension.knob] = (
                    IntDistribution(0, last)
                    if dimension.ordered
                    else CategoricalDistribution(tuple(range(last + 1)))
                )
        sampler = TPESampler(seed=problem.seed, n_startup_trials=STARTUP, multivariate=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)

    def ask(self) -> Setting | None:
        for _ in range(RETRIES if self._distributions else 0):
            asked = self._study.ask(self._distributions)
            self._study.tell(asked, state=TrialState.FAIL)
            row = tuple(
                int(asked.params.get(dimension.knob, 0)) for dimension in self._problem.dimensions
            )
            setting = self._lattice.setting(row)
            if self._lattice.allows(row) and not self._observed.tried(setting):
                return setting
        rng = random.Random(f"{self._problem.seed}:{len(self._study.trials)}")
        for row in self._lattice.draw(rng, RETRIES):
            setting = self._lattice.setting(row)
            if not self._observed.tried(setting):
                return setting
        return None

    def tell(self, trial: Trial) -> None:
        self._observed.add(trial)
        row = self._lattice.row(trial.setting)
        if row is None or trial.status in (Status.FAILED, Status.INFEASIBLE):
            return
        gain = self._observed.gain(trial.setting)
        baseline = self._observed.figures(self._problem.baseline)
        over = {
            figure.name: math.log(trial.figures[figure.name].value / limit)
            for figure in self._problem.figures
            if figure.name in trial.figures and (limit := figure.limit(baseline)) is not None
        }
        value = math.log(gain.value) if gain is not None else self._worst
        self._worst = min(self._worst, value)
        if gain is None and max(over.values(), default=0.0) <= 0:
            return
        knobs = zip(self._problem.dimensions, row, strict=True)
        self._study.enqueue_trial({d.knob: i for d, i in knobs if d.knob in self._distributions})
        told = self._study.ask(self._distributions)
        for name, by in over.items():
            told.set_constraint(name, by)
        self._study.tell(told, value)

    def recommend(self) -> Recommendation:
        return self._observed.recommend()

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return self._observed.weigh(trials, setting, doubtful)
