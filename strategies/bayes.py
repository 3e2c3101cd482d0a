"""The default strategy: Bayesian optimisation with a model per measured figure.

Every figure has its own Gaussian process over only the knobs that can move it; the objective and
the ceilings follow from them by their formulas. A trial goes where the best setting is expected
to look better for it (the knowledge gradient), times P(hold), less the price of the harm it may
do, among those with the greatest expected improvement likewise; the last ones go to the model's
best. What is recommended is what is most worth a proof.
"""

import itertools
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Status, Trial
from autotune.strategies._lattice import Lattice, Row
from autotune.strategies._tried import Tried
from autotune.strategies.surrogate import importance
from autotune.strategies.surrogate.acquisition import (
    knowledge_gradient,
    log_expected_improvement,
    prospect,
    worth,
)
from autotune.strategies.surrogate.belief import Belief, Beliefs
from autotune.strategies.surrogate.calibration import Foresight
from autotune.strategies.surrogate.candidates import candidates

STARTS = 3
"""Settings around which candidates are taken."""
LOOKED_AT = 50
"""Candidates whose knowledge gradient is worked out."""
DRAWS = 32
"""How often it is drawn what a trial may show, each with its mirror image."""
LEAST_HOLD = 0.4
"""The least P(hold) of what is tried."""
MOST_HARM_S = 6.0
"""The most harm that a careful search expects of a trial: seconds over a ceiling, times the part
by which it is passed."""
NEARLY = 0.95
"""If the baseline is not so safe: so much of its own."""
PRICE = 0.003
"""What a second half over a ceiling costs a careful search, in units of the gain: it bears three
for what brings 1 %. So it dares more at first, when there is much to learn."""
MENDS = 0.1
"""The least P(hold) of what may mend ceilings that the baseline breaks."""
FINISH = 0.15
"""The part of the budget that goes to the model's best."""
NOTICED = 0.002
"""Expected rise of the gain for which another trial is not worth its time. It is an average: a
chance of one in five of 1 %."""
NEXT = 0.6
"""How often there is time to prove the next best, if a proof fails."""
PROOF = 0.003
"""Expected gain for which a proof is not worth its time, likewise."""
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
        self._baseline_holds = 1.0
        """P(hold) of the baseline as measured: bad neighbours make it no worse."""
        self._mending = False
        """Whether the baseline breaks its ceilings, and what holds them is looked for first."""
        self._tried = Tried(self._lattice)

    def tell(self, trial: Trial) -> None:
        self._tried.add(trial)
        is_baseline = self._lattice.row(trial.setting) == self._lattice.baseline
        if not is_baseline and trial.status in (Status.COMPLETE, Status.ABORTED):
            self._foresight.add(trial.setting, float(self._beliefs.of([trial.setting]).hold[0]))
        self._beliefs.add(trial)
        if is_baseline:
            self._baseline_holds = float(self._beliefs.of([trial.setting]).hold[0])

    def ask(self) -> Setting | None:
        self._mending = self._beliefs.broken()
        pool = self._untried()
        finishing = self._finishing()
        if finishing:
            pool += self._tried.usable()
        if not pool:
            return None
        settings = self._settings(pool)
        belief = self._beliefs.of(settings, self._mending)
        if self._mending and float(belief.hold.max()) < MENDS:
            self._mending, belief = False, self._beliefs.of(settings)
        bearable = self._bearable(belief)
        if not bearable.any():
            return None
        return (self._closing if finishing else self._most_telling)(settings, belief, bearable)

    def recommend(self) -> Recommendation:
        self._mending = self._beliefs.broken()
        settings = [self._problem.baseline, *self._settings(self._tried.usable())]
        # The proof is a trial too, and may be of what was seen apart.
        settings += self._settings(self._together())
        proven = self._problem.proven
        found = prospect(self._beliefs, settings, self._mending, proven)
        if found.value.max() <= PROOF:
            # What mends nothing may still bring something.
            found = prospect(self._beliefs, settings, False, proven)
        # If a proof fails, the next best may be proven.
        first = found.value + NEXT * (1.0 - found.passes) * found.value.max()
        worthy = found.value > PROOF
        best = int(np.argmax(np.where(worthy, first, 0.0)))
        belief = self._beliefs.of([settings[best]])
        hold = float(belief.hold[0])
        gain = Estimate(float(np.exp(belief.mean[0])), float(belief.spread[0]))
        return Recommendation(dict(settings[best]), gain if best else Estimate(1.0, 0.0), hold)

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return importance.weigh(self._problem, trials, setting, doubtful)

    def _untried(self) -> list[Row]:
        rng = random.Random(f"{self._problem.seed}:{self._tried.trials}")
        pool = candidates(self._lattice, rng, self._starts(), self._problem.hints)
        return self._tried.untried(pool)

    def _together(self) -> list[Row]:
        """What was not tried: the best settings with one or two values of another that was."""
        tried = [self._lattice.baseline, *self._tried.usable()]
        places = range(len(self._lattice.baseline))
        found: dict[Row, None] = {}
        for start, other in itertools.product(self._starts(), tried):
            differ = [place for place in places if start[place] != other[place]]
            for some in (*itertools.combinations(differ, 1), *itertools.combinations(differ, 2)):
                row = tuple(other[p] if p in some else start[p] for p in places)
                found[row] = None
        return [row for row in self._tried.untried(list(found)) if self._lattice.allows(row)]

    def _settings(self, rows: list[Row]) -> list[Setting]:
        return [self._lattice.setting(row) for row in rows]

    def _promise(self, belief: Belief) -> NDArray[np.float64]:
        """The log of the expected improvement times P(hold) (n,): over the best posterior mean
        of what probably holds, never over a measured value, which would be the luckiest."""
        settings = [self._problem.baseline, *self._settings(self._tried.usable())]
        known = self._beliefs.of(settings, self._mending)
        holding = known.mean[known.hold > 0.5]
        incumbent = float(holding.max() if len(holding) else known.mean.min())
        score = log_expected_improvement(belief.mean, belief.spread, incumbent)
        return score + belief.log_hold

    def _closing(
        self, settings: list[Setting], belief: Belief, bearable: NDArray[np.bool_]
    ) -> Setting | None:
        """The model's best of what is bearable, tried before or not; None if that is not worth a
        trial."""
        value = worth(belief.mean, belief.log_hold, self._mending)
        value = np.where(bearable, value - self._price * belief.harm, -np.inf)
        best = int(np.argmax(value))
        if value[best] > NOTICED:
            return settings[best]
        return self._most_telling(settings, belief, bearable)

    def _draws(self) -> NDArray[np.float64]:
        """What a trial may show, in standard deviations (figures, 2 DRAWS)."""
        rng = np.random.default_rng([self._problem.seed, self._tried.trials])
        drawn = rng.standard_normal((len(self._beliefs.evidence), DRAWS))
        return np.hstack([drawn, -drawn])

    def _most_telling(
        self, settings: list[Setting], belief: Belief, bearable: NDArray[np.bool_]
    ) -> Setting | None:
        """The bearable setting with the greatest knowledge gradient, less the price of breaking.
        What is not bearable counts among what might be recommended: to learn more is worth it."""
        expected = np.exp(self._promise(belief))
        cost = self._price * belief.harm
        rank = np.where(bearable, expected - cost, -np.inf)
        promising = np.argsort(-rank, kind="stable")
        promising = promising[: min(LOOKED_AT, int(bearable.sum()))]
        value = worth(belief.mean, belief.log_hold, self._mending)
        best = np.argsort(-value, kind="stable")[:LOOKED_AT]
        proposals = [settings[i] for i in promising]
        choices = [settings[i] for i in dict.fromkeys([*promising.tolist(), *best.tolist()])]
        choices += [self._problem.baseline, *self._settings(self._tried.usable())]
        value = knowledge_gradient(self._beliefs, proposals, choices, self._draws(), self._mending)
        # A trial that breaks a ceiling hurts, and ends before it has told everything.
        value *= belief.hold[promising]
        most = max(value.max(), expected.max())
        if most < NOTICED and self._tried.searched >= PATIENCE:
            return None
        value -= cost[promising]
        slack = (1.0 - CHEAPER) * abs(value.max())
        close = [i for i in np.argsort(-value) if value[i] >= value.max() - slack]
        cheapest: Setting = min((proposals[i] for i in close), key=self._cost, default=proposals[0])
        return cheapest

    def _bearable(self, belief: Belief) -> NDArray[np.bool_]:
        """Which settings hold well enough to be tried (n,): where the baseline is over its ceiling,
        those about as safe as it. None, if little held of what was to hold and that leaves none.
        A careful search bears so much harm, too."""
        bar = min(LEAST_HOLD, NEARLY * self._baseline_holds)
        doubted = belief.hold * self._foresight.trust(self._beliefs)
        bearable = (doubted if doubted.max() < bar else belief.hold) >= bar
        if self._problem.careful:
            bearable &= belief.harm <= MOST_HARM_S + self._harm_of_baseline()
        return np.asarray(bearable)

    def _harm_of_baseline(self) -> float:
        return float(self._beliefs.of([self._problem.baseline], self._mending).harm[0])

    def _cost(self, setting: Setting) -> float:
        """Seconds to measure the phases of which something new would be learnt."""
        phases = {evidence.figure.phase for evidence in self._beliefs.fresh(setting)}
        return sum(self._problem.seconds.get(phase, 0.0) for phase in phases)

    def _finishing(self) -> bool:
        left = self._problem.trials - self._tried.searched
        return left <= max(1, round(FINISH * self._problem.trials))

    def _starts(self) -> list[Row]:
        rows = [self._lattice.baseline, *self._tried.usable()]
        belief = self._beliefs.of(self._settings(rows), self._mending)
        order = np.argsort(-(belief.mean + belief.log_hold), kind="stable")
        return [rows[i] for i in order[:STARTS]]
