"""Uniform random settings: what any search must beat."""

import random
from collections.abc import Sequence

from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.strategies._lattice import Lattice
from autotune.strategies._observed import Observed


class Random:
    """Proposes allowed settings not tried before, uniformly; None when there is none left."""

    def __init__(self, problem: Problem) -> None:
        self._lattice = Lattice(problem)
        self._observed = Observed(problem)
        self._seed = problem.seed
        self._told = 0

    def ask(self) -> Setting | None:
        rng = random.Random(f"{self._seed}:{self._told}")
        # One more than was tried, so that at least one is new if there is one.
        for row in self._lattice.draw(rng, self._told + 16):
            setting = self._lattice.setting(row)
            if not self._observed.tried(setting):
                return setting
        if self._lattice.size <= 2 * self._told + 16:
            return None
        around = self._lattice.neighbours(self._lattice.baseline)
        rows = (self._lattice.setting(row) for row in around)
        return next((setting for setting in rows if not self._observed.tried(setting)), None)

    def tell(self, trial: Trial) -> None:
        self._told += 1
        self._observed.add(trial)

    def recommend(self) -> Recommendation:
        return self._observed.recommend()

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return self._observed.weigh(trials, setting, doubtful)
