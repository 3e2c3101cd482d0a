"""What the models together say of settings: the objective, and whether the ceilings hold.

A weighted geometric mean of log-normals is log-normal: its log has mean Σwμ and variance Σw²σ².
The figures' models are independent, so P(hold) is a product.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem
from autotune.problem.trial import Trial
from autotune.strategies._harm import harm
from autotune.strategies.surrogate.axis import Axis
from autotune.strategies.surrogate.evidence import Evidence
from autotune.strategies.surrogate.gaussian_process import Array

BROKEN = 0.05
"""What holds with less than this surely breaks its ceilings."""
AS_BAD = math.log(1.1)
"""How much more than the baseline's own is no worse, where that is over a ceiling."""
USUAL_S = 30.0
"""What a phase takes of which nothing is known."""


@dataclass(frozen=True)
class Belief:
    """Of n settings: the mean and the spread of the log gain over the baseline's true performance,
    the log of P(hold), and the harm that a trial is expected to do, each (n,)."""

    mean: Array
    spread: Array
    log_hold: Array
    harm: Array

    @property
    def hold(self) -> Array:
        return np.asarray(np.exp(self.log_hold), dtype=float)


@dataclass(frozen=True)
class Limited:
    """A latency under a limit, of n settings: what is to be at most `limit` has this mean and
    variance. `relative`: that is the difference to the baseline. `counts`: where it is held
    against a setting. `noise`: the variance that two pairs of measurements in turn leave."""

    evidence: Evidence
    relative: bool
    limit: float
    mean: Array
    variance: Array
    counts: NDArray[np.bool_]
    noise: float


class Beliefs:
    """The evidence on every figure that matters: weighted, or under a ceiling."""

    def __init__(self, problem: Problem) -> None:
        axes = [Axis(dimension) for dimension in problem.dimensions if len(dimension.choices) > 1]
        self.evidence = [
            Evidence(problem, figure, axes)
            for figure in problem.figures
            if figure.weight > 0 or figure.limited
        ]
        self.baseline = problem.baseline
        self._carried = problem.carried
        self._seconds = problem.seconds

    def add(self, trial: Trial) -> None:
        for evidence in self.evidence:
            evidence.add(trial)

    def shares(self) -> list[tuple[Evidence, float]]:
        """The weighted figures that were measured, with their exponents, which sum to 1."""
        weighted = [e for e in self.evidence if e.figure.weight > 0 and e.origin is not None]
        total = sum(evidence.figure.weight for evidence in weighted)
        return [(evidence, evidence.figure.weight / total) for evidence in weighted]

    def of(self, settings: Sequence[Setting], strict: bool = False) -> Belief:
        """The belief of the settings. A ceiling whose figure was never measured is left out: it
        cannot tell settings apart. `strict`: see `limits`."""
        count = len(settings)
        mean, variance, log_hold = np.zeros(count), np.zeros(count), np.zeros(count)
        hurt = np.zeros(count)
        for evidence, share in self.shares():
            mu, var = evidence.over_baseline(settings)
            mean += share * mu
            variance += share**2 * var
        for limited in self.limits(settings, strict):
            margin = (limited.limit - limited.mean) / np.sqrt(limited.variance)
            log_hold += np.where(limited.counts, log_ndtr(margin), 0.0)
            seconds = self._seconds.get(limited.evidence.figure.phase, USUAL_S)
            passed = harm(limited.mean, limited.variance, limited.limit, seconds)
            hurt += np.where(limited.counts, passed, 0.0)
        return Belief(mean, np.sqrt(variance), log_hold, hurt)

    def limits(self, settings: Sequence[Setting], strict: bool = False) -> Iterator[Limited]:
        """The latencies under a limit.

        What no changed knob can move is not held against a setting, and what the baseline surely
        breaks may be as bad as with that. Not so if `strict`, nor for the baseline itself.
        """
        anyway = self.is_baseline(settings) | strict
        for evidence in self.evidence:
            limit = evidence.log_limit
            if limit is None:
                continue
            counts = evidence.moved(settings) | anyway
            noise = evidence.noise()
            if evidence.relative or (not strict and self._breaks(evidence, limit)):
                limit = limit if evidence.relative else AS_BAD
                mean, variance = evidence.over_baseline(settings)
                yield Limited(evidence, True, limit, mean, variance, counts, noise)
            else:
                mean, variance = evidence.posterior(settings)
                yield Limited(evidence, False, limit, mean, variance, counts, noise / 2)

    def _breaks(self, evidence: Evidence, limit: float) -> bool:
        """Whether the baseline surely breaks a limit in ns."""
        mean, variance = evidence.posterior([self.baseline])
        return float(log_ndtr((limit - mean[0]) / math.sqrt(variance[0]))) < math.log(BROKEN)

    def broken(self) -> bool:
        """Whether the baseline surely breaks its ceilings."""
        return float(self.of([self.baseline], strict=True).hold[0]) < BROKEN

    def proof_variance(self, settings: Sequence[Setting]) -> Array:
        """The variance of the log gain (n,) that two pairs of measurements in turn leave."""
        variance = np.zeros(len(settings))
        for evidence, share in self.shares():
            variance += np.where(evidence.moved(settings), share**2 * evidence.noise(), 0.0)
        return variance

    def is_baseline(self, settings: Sequence[Setting]) -> NDArray[np.bool_]:
        """Which of the settings are the baseline (n,)."""
        baseline = setting_key(self.baseline)
        return np.array([setting_key(setting) == baseline for setting in settings], dtype=bool)

    def fresh(self, setting: Setting) -> list[Evidence]:
        """The evidence on what a trial of the setting is the first to measure; on all of it, if
        none is: a repeat."""
        return [e for e in self.evidence if not e.measured(setting)] or self.evidence

    def shift(
        self, evidence: Evidence, proposals: Sequence[Setting], choices: Sequence[Setting]
    ) -> Array:
        """By how much a figure's mean at each choice moves if a trial of each proposal shows a
        standard deviation more than expected (n, m)."""
        _, there = evidence.posterior(proposals)
        moved = evidence.covariance(proposals, choices)
        moved /= np.sqrt(there + evidence.noise())[:, None]
        if not self._carried:
            return moved
        told = [evidence in self.fresh(proposal) for proposal in proposals]
        return np.where(np.array(told)[:, None], moved, 0.0)

    def joint(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Mean (n,) and covariance (n, n) of the log gain of the settings."""
        count = len(settings)
        mean, covariance = np.zeros(count), np.zeros((count, count))
        for evidence, share in self.shares():
            mean += share * evidence.posterior(settings)[0]
            covariance += share**2 * evidence.covariance(settings, settings)
        return mean, covariance
