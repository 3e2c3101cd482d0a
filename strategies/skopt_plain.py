"""scikit-optimize as shipped, with a penalty for broken ceilings: a rival."""

import math
import random
import warnings
from collections.abc import Sequence

from skopt import Optimizer
from skopt.space import Categorical, Integer

from autotune.problem.objective import broken_ceilings
from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Status, Trial
from autotune.strategies._lattice import Lattice
from autotune.strategies._observed import Observed

RETRIES = 10
"""Proposals that the exact filter may refuse before any allowed setting is taken."""
PENALTY = 1.0
"""Added to the score for a broken ceiling: as much as losing two thirds of the speed."""
STARTUP = 5


class SkoptPlain:
    """`Optimizer.ask` on the negative log gain; what the filter refuses is told as a penalty."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._lattice = Lattice(problem)
        self._observed = Observed(problem)
        self._free = [n for n, d in enumerate(problem.dimensions) if len(d.choices) > 1]
        self._optimizer = None
        if self._free:
            axes = [
                Integer(0, len(problem.dimensions[n].choices) - 1)
                if problem.dimensions[n].ordered
                else Categorical(range(len(problem.dimensions[n].choices)))
                for n in self._free
            ]
            self._optimizer = Optimizer(
                axes, "GP", n_initial_points=STARTUP, acq_func="EI", random_state=problem.seed
            )

    def ask(self) -> Setting | None:
        for _ in range(RETRIES if self._optimizer else 0):
            point = self._quietly("ask")
            row = list(self._lattice.baseline)
            for place, index in zip(self._free, point, strict=True):
                row[place] = int(index)
            setting = self._lattice.setting(tuple(row))
            if not self._lattice.allows(tuple(row)):
                self._quietly("tell", point, PENALTY)
            elif not self._observed.tried(setting):
                return setting
            else:
                break
        rng = random.Random(f"{self._problem.seed}:{len(self._observed)}")
        for drawn in self._lattice.draw(rng, len(self._observed) + RETRIES):
            setting = self._lattice.setting(drawn)
            if not self._observed.tried(setting):
                return setting
        return None

    def tell(self, trial: Trial) -> None:
        self._observed.add(trial)
        row = self._lattice.row(trial.setting)
        if self._optimizer is None or row is None or trial.status == Status.FAILED:
            return
        gain = self._observed.gain(trial.setting)
        baseline = self._observed.figures(self._problem.baseline)
        over = broken_ceilings(self._problem.figures, trial.figures, baseline)
        broken = trial.status != Status.COMPLETE or bool(over)
        if gain is None and not broken:
            return
        score = -math.log(gain.value) if gain is not None else 0.0
        point = [row[place] for place in self._free]
        self._quietly("tell", point, score + (PENALTY if broken else 0.0))

    def recommend(self) -> Recommendation:
        return self._observed.recommend()

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return self._observed.weigh(trials, setting, doubtful)

    def _quietly(self, call: str, *arguments: object) -> list[int]:
        """Its warnings (repeated points, unconverged fits) are nothing that a user can act on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer: list[int] = getattr(self._optimizer, call)(*arguments)
        return answer
