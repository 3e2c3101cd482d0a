"""The default strategy: Bayesian optimisation with a model per measured figure.

Every figure has its own Gaussian process over only the knobs that can move it; the objective and
the ceilings follow from them by their formulas. A trial goes where the best setting is expected
to look better for it (the knowledge gradient), times P(hold), less the price of a broken ceiling,
among those with the greatest expected improvement likewise; the last ones go to the model's best.
"""

import random

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from autotune.search import Estimate, Problem, Recommendation, Setting, Status, Trial
from autotune.strategies._acquisition import (
    knowledge_gradient,
    log_expected_improvement,
    worth,
)
from autotune.strategies._belief import Belief, Beliefs
from autotune.strategies._candidates import candidates
from autotune.strategies._foresight import Foresight
from autotune.strategies._lattice import Lattice, Row

STARTS = 3
"""Settings around which candidates are taken."""
LOOKED_AT = 50
"""Candidates whose knowledge gradient is worked out."""
DRAWS = 32
"""What a trial may show, with its mirror image, for the knowledge gradient."""
EAGER, CAREFUL = 0.4, 0.5
"""The least P(hold) of what is tried."""
NEARLY = 0.95
"""If the baseline is not so safe: so much of its own."""
PRICE = 0.1
"""What a broken ceiling costs a careful search, in units of the gain: it bears a chance of one in
ten of it for what brings 1 %. So it dares more at first, when there is much to learn."""
PROVEN = 0.9
"""The least P(hold) of what is recommended, other than the baseline."""
SURE = 0.97
"""The least probability of being better than the baseline for leaving it."""
BROKEN = 0.05
"""A baseline that holds with less than this breaks its ceilings; its speed is no mark to beat."""
FINISH = 0.15
"""The part of the budget that goes to the model's best."""
NOTICED = 0.005
"""Expected rise of the gain for which another trial is not worth its time. It is an average: a
chance of one in two of 1 %."""
PATIENCE = 6
"""Trials before a search may stop for that."""
CHEAPER = 0.98
"""Of candidates that bring so much of the best one's, the cheapest to measure is taken."""


class Bayes:
    """Deterministic: a proposal depends on the problem and the trials told, not on the asks."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._lattice = Lattice(problem)
        self._beliefs = Beliefs(problem)
        self._foresight = Foresight()
        self._price = PRICE if problem.careful else 0.0
        self._home = 1.0
        """P(hold) of the baseline as measured: bad neighbours make it no worse."""
        self._told = 0
        self._searched = 0
        self._tried: dict[Row, bool] = {}
        """What gave figures, and whether a trial of it ran to its end."""
        self._refused: set[Row] = set()
        self._failed: set[Row] = set()

    def tell(self, trial: Trial) -> None:
        self._told += 1
        row = self._lattice.row(trial.setting)
        self._searched += row != self._lattice.baseline
        if row != self._lattice.baseline and trial.status in (Status.COMPLETE, Status.ABORTED):
            self._foresight.add(trial.setting, float(self._beliefs.of([trial.setting]).hold[0]))
        if row is not None and trial.status == Status.INFEASIBLE:
            self._refused.add(row)
        elif row is not None and trial.status == Status.FAILED:
            # Once is chance; a setting whose measurement breaks twice is left alone.
            (self._refused if row in self._failed else self._failed).add(row)
        elif row is not None:
            ended = trial.status == Status.COMPLETE
            self._tried[row] = ended or self._tried.get(row, False)
        self._beliefs.add(trial)
        if row == self._lattice.baseline:
            self._home = float(self._beliefs.of([trial.setting]).hold[0])

    def ask(self) -> Setting | None:
        rng = random.Random(f"{self._problem.seed}:{self._told}")
        pool = candidates(self._lattice, rng, self._starts(), self._problem.hints)
        spent = {*self._refused, self._lattice.baseline}
        finishing = self._finishing()
        pool = [row for row in pool if row not in spent and row not in self._tried]
        if finishing:
            pool += [row for row in self._usable() if row not in spent]
        settings: list[Setting] = [self._lattice.setting(row) for row in pool]
        if not settings:
            return None
        belief = self._beliefs.of(settings)
        bearable = self._bearable(belief)
        if not bearable.any():
            return None
        if finishing:
            value = worth(belief.mean, belief.log_hold) - self._price * (1.0 - belief.hold)
            value = np.where(bearable, value, -np.inf)
            best = int(np.argmax(value))
            return settings[best] if value[best] > NOTICED else None
        return self._most_telling(settings, belief, bearable)

    def recommend(self) -> Recommendation:
        rows = [row for row in self._usable() if row != self._lattice.baseline]
        settings: list[Setting] = [self._problem.baseline]
        settings += [self._lattice.setting(row) for row in rows]
        hold = self._beliefs.of(settings).hold
        mean, spread = self._beliefs.over_baseline(settings)
        broken = float(hold[0]) < BROKEN
        better = ndtr(mean / np.maximum(spread, 1e-9))
        value = hold * (np.exp(mean) - (0.0 if broken else 1.0))
        value[(hold < PROVEN) | ((better < SURE) & (not broken))] = -np.inf
        value[0] = 0.0
        best = int(np.argmax(value))
        gain = Estimate(float(np.exp(mean[best])), float(spread[best]))
        if best == 0:
            gain = Estimate(1.0, 0.0)
        return Recommendation(dict(settings[best]), gain, float(hold[best]))

    def _most_telling(
        self, settings: list[Setting], belief: Belief, bearable: NDArray[np.bool_]
    ) -> Setting | None:
        """The bearable setting with the greatest knowledge gradient, less the price of breaking.
        What is not bearable counts among what might be recommended: to learn more is worth it."""
        score = log_expected_improvement(belief.mean, belief.spread, self._incumbent())
        expected = np.exp(score + belief.log_hold)
        cost = self._price * (1.0 - belief.hold)
        rank = np.where(bearable, expected - cost, -np.inf)
        promising = np.argsort(-rank, kind="stable")
        promising = promising[: min(LOOKED_AT, int(bearable.sum()))]
        best = np.argsort(-worth(belief.mean, belief.log_hold), kind="stable")[:LOOKED_AT]
        tried = [settings[i] for i in promising]
        choices = [settings[i] for i in dict.fromkeys([*promising.tolist(), *best.tolist()])]
        choices += [self._lattice.setting(row) for row in self._usable()]
        draws = np.random.default_rng([self._problem.seed, self._told]).standard_normal(
            (len(self._beliefs.evidence), DRAWS)
        )
        value = knowledge_gradient(self._beliefs, tried, choices, np.hstack([draws, -draws]))
        # A trial that breaks a ceiling hurts, and ends before it has told everything.
        value *= belief.hold[promising]
        most = max(value.max(), expected.max())
        if most < NOTICED and self._searched >= PATIENCE:
            return None
        value -= cost[promising]
        slack = (1.0 - CHEAPER) * abs(value.max())
        close = [i for i in np.argsort(-value) if value[i] >= value.max() - slack]
        cheapest: Setting = min((tried[i] for i in close), key=self._cost, default=tried[0])
        return cheapest

    def _bearable(self, belief: Belief) -> NDArray[np.bool_]:
        """Which settings hold well enough to be tried (n,): where the baseline is over its ceiling,
        those about as safe as it. None, if little held of what was to hold and that leaves none;
        a careful search doubts each setting so."""
        bar = min(CAREFUL if self._problem.careful else EAGER, NEARLY * self._home)
        doubted = belief.hold * self._foresight.trust(self._beliefs)
        doubting = self._problem.careful or doubted.max() < bar
        return np.asarray((doubted if doubting else belief.hold) >= bar)

    def _cost(self, setting: Setting) -> float:
        """Seconds to measure the phases of which something new would be learnt."""
        phases = {e.figure.phase for e in self._beliefs.evidence if not e.measured(setting)}
        return sum(self._problem.seconds.get(phase, 0.0) for phase in phases)

    def _finishing(self) -> bool:
        left = self._problem.trials - self._searched
        return left <= max(1, round(FINISH * self._problem.trials))

    def _usable(self) -> list[Row]:
        """What may be recommended: ran to its end, is allowed, and was taken by the kernel."""
        return [
            row
            for row, ended in self._tried.items()
            if ended and row not in self._refused and self._lattice.allows(row)
        ]

    def _incumbent(self) -> float:
        """The best posterior mean among what was tried and probably holds: never a measured
        value, which would be the luckiest."""
        settings: list[Setting] = [self._problem.baseline]
        settings += [self._lattice.setting(row) for row in self._usable()]
        belief = self._beliefs.of(settings)
        holding = belief.mean[belief.hold > 0.5]
        return float(holding.max()) if len(holding) else float(belief.mean.min())

    def _starts(self) -> list[Row]:
        rows = self._usable() or [self._lattice.baseline]
        belief = self._beliefs.of([self._lattice.setting(row) for row in rows])
        order = np.argsort(-(belief.mean + belief.log_hold), kind="stable")
        return [rows[i] for i in order[:STARTS]]
