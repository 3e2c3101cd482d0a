"""What the models together say of settings: the objective, and whether the ceilings hold.

A weighted geometric mean of log-normals is log-normal: its log has mean Σwμ and variance Σw²σ².
The figures' models are independent, so P(hold) is a product.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem
from autotune.problem.trial import Trial
from autotune.strategies.surrogate.axis import Axis
from autotune.strategies.surrogate.evidence import Evidence
from autotune.strategies.surrogate.gaussian_process import Array


@dataclass(frozen=True)
class Belief:
    """Of n settings: the log gain's mean and spread, and the log of P(hold), each (n,)."""

    mean: Array
    spread: Array
    log_hold: Array

    @property
    def hold(self) -> Array:
        return np.asarray(np.exp(self.log_hold), dtype=float)


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

    def add(self, trial: Trial) -> None:
        for evidence in self.evidence:
            evidence.add(trial)

    def shares(self) -> list[tuple[Evidence, float]]:
        """The weighted figures that were measured, with their exponents, which sum to 1."""
        weighted = [e for e in self.evidence if e.figure.weight > 0 and e.origin is not None]
        total = sum(evidence.figure.weight for evidence in weighted)
        return [(evidence, evidence.figure.weight / total) for evidence in weighted]

    def of(self, settings: Sequence[Setting]) -> Belief:
        """The belief of the settings; the gain is relative to the baseline's first trial.

        A ceiling whose figure was never measured is left out: it cannot tell settings apart.
        """
        count = len(settings)
        mean, variance, log_hold = np.zeros(count), np.zeros(count), np.zeros(count)
        for evidence, share in self.shares():
            mu, var = evidence.posterior(settings)
            mean += share * mu
            variance += share**2 * var
        for evidence in self.evidence:
            limit = evidence.log_limit
            if limit is not None:
                mu, var = evidence.held_to(settings)
                holds = log_ndtr((limit - mu) / np.sqrt(var))
                # What no changed knob can move is not held against a setting.
                log_hold += np.where(evidence.moved(settings) | self.at_home(settings), holds, 0.0)
        return Belief(mean, np.sqrt(variance), log_hold)

    def at_home(self, settings: Sequence[Setting]) -> NDArray[np.bool_]:
        """Which of the settings are the baseline (n,)."""
        home = setting_key(self.baseline)
        return np.array([setting_key(setting) == home for setting in settings], dtype=bool)

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

    def over_baseline(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Mean and spread (n,) of the log gain over the baseline's true performance."""
        mean, variance = np.zeros(len(settings)), np.zeros(len(settings))
        for evidence, share in self.shares():
            mu, var = evidence.over_baseline(settings)
            mean += share * mu
            variance += share**2 * var
        return mean, np.sqrt(np.maximum(variance, 0.0))
