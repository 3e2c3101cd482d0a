"""The default strategy with the family's own covariance for its models: what it would get if it
knew how the synthetic arrays are made. What it misses is not the models' fault."""

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Problem
from autotune.problem.trial import Trial
from autotune.strategies.bayes import Bayes
from autotune.strategies.surrogate.axis import Axis
from autotune.strategies.surrogate.evidence import LEAST_SPREAD, Evidence
from benchmarks.search.curves import Array, DrawnCurves
from benchmarks.search.synthetic import BASELINE, KINDS, LADDERS, MOVED_BY, STRENGTH

DRAWN = 800
"""Arrays from which means and covariances are taken; none of them is raced on."""
FIRST_SEED = 77
LEVEL = 0.25
"""Variance of a figure's level, about which nothing is known."""
JITTER = 1e-4
SHOWN = 0.8
"""What a measurement shows of its true spread, as the insider knows."""
APART = {"default-best", "tight", "hidden"}
"""Kinds that are no draw of the same curves."""

Table = tuple[tuple[str, ...], dict[tuple[Value, ...], int], Array]


@functools.cache
def tables(knobs: tuple[str, ...]) -> dict[str, Table]:
    """For each figure: its knobs, the place of each of their settings, and the logs of all drawn
    arrays there (arrays, settings)."""
    kinds = [kind for kind in KINDS if kind not in APART]
    baseline = {knob: BASELINE[knob] for knob in knobs}
    drawn = [
        DrawnCurves(
            np.random.default_rng([FIRST_SEED, i]),
            baseline,
            MOVED_BY,
            kinds[i % len(kinds)],
            STRENGTH,
        )
        for i in range(DRAWN)
    ]
    found: dict[str, Table] = {}
    for figure, by in MOVED_BY.items():
        own = tuple(knob for knob in knobs if knob in by)
        grid = list(itertools.product(*(LADDERS[knob] for knob in own)))
        columns = {knob: np.full(len(grid), value) for knob, value in baseline.items()}
        for place, knob in enumerate(own):
            columns[knob] = np.array([setting[place] for setting in grid])
        logs = np.array([curves(columns)[figure] for curves in drawn], dtype=np.float32)
        found[figure] = (own, {setting: i for i, setting in enumerate(grid)}, logs)
    return found


class _Known(Evidence):
    """A figure's observations, under the covariance that the family has."""

    def __init__(self, problem: Problem, figure: Figure, axes: Sequence[Axis]) -> None:
        super().__init__(problem, figure, axes)
        knobs = tuple(knob for knob in LADDERS if knob in problem.baseline)
        self._own, self._places, logs = tables(knobs)[figure.name]
        self._mean = logs.mean(axis=0).astype(float)
        self._off = logs - self._mean.astype(np.float32)
        self._fitted: tuple[Array, Array, Array, float] | None = None

    def add(self, trial: Trial) -> None:
        super().add(trial)
        self._fitted = None

    def _at(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """The drawn arrays' deviations (arrays, n) and their mean (n,)."""
        places = [self._places[tuple(s[knob] for knob in self._own)] for s in settings]
        return self._off[:, places].astype(float), self._mean[places]

    def _fit(self) -> tuple[Array, Array, Array, float]:
        """Deviations where it was measured, a Cholesky factor, weights, and a trial's noise."""
        if self._fitted is None:
            estimates = [estimate for _, estimate in self._seen]
            values = np.array([math.log(e.value) - (self.origin or 0.0) for e in estimates])
            baseline = self.part(self._baseline)
            is_baseline = np.array([part == baseline for part, _ in self._seen])
            variances = np.array([_variance(e) for e in estimates])
            noise = float(np.median(variances))
            spreads = np.sqrt(variances)
            self._presume(values, spreads, is_baseline)
            variances[is_baseline] = np.minimum(variances, spreads**2)[is_baseline]
            off, mean = self._at(list(self._seen.values()))
            covariance = off.T @ off / DRAWN + LEVEL + np.diag(variances + JITTER)
            lower = np.linalg.cholesky(covariance)
            weights = np.linalg.solve(lower.T, np.linalg.solve(lower, values - mean))
            self._fitted = off, lower, weights, noise
        return self._fitted

    def noise(self) -> float:
        return self._fit()[3]

    def posterior(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        off, mean = self._at(settings)
        seen, lower, weights, _ = self._fit()
        cross = seen.T @ off / DRAWN + LEVEL
        half = np.linalg.solve(lower, cross)
        variance = (off**2).sum(axis=0) / DRAWN + LEVEL - (half**2).sum(axis=0)
        return mean + cross.T @ weights, np.maximum(variance, 1e-12)

    def covariance(self, left: Sequence[Setting], right: Sequence[Setting]) -> Array:
        one, other = self._at(left)[0], self._at(right)[0]
        seen, lower, _, _ = self._fit()
        halves = [np.linalg.solve(lower, seen.T @ off / DRAWN + LEVEL) for off in (one, other)]
        return np.asarray(one.T @ other / DRAWN + LEVEL - halves[0].T @ halves[1])


def _variance(estimate: Estimate) -> float:
    return max(estimate.spread / SHOWN, LEAST_SPREAD) ** 2


class Insider(Bayes):
    """To be raced on synthetic arrays alone."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        axes = [Axis(dimension) for dimension in problem.dimensions]
        self._beliefs.evidence = [
            _Known(problem, evidence.figure, axes) for evidence in self._beliefs.evidence
        ]
