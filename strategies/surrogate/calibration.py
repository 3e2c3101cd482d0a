"""Whether what was expected to hold did: the models may be wrong about an array as a whole."""

from autotune.problem.setting import Setting
from autotune.strategies.surrogate.belief import Beliefs

FAITH = 2.0
"""Trials that what the models expect beforehand is worth: with two it takes three or four that
break where most were to hold, which is more than bad luck, until little is left of it."""


class Foresight:
    """The settings tried, with the P(hold) that each had before."""

    def __init__(self) -> None:
        self._tried: list[Setting] = []
        self._expected = 0.0

    def add(self, setting: Setting, hold: float) -> None:
        self._tried.append(setting)
        self._expected += hold

    def trust(self, beliefs: Beliefs) -> float:
        """The factor, at most 1, by which what was expected to hold did: the posterior mean of
        a Poisson rate per trial expected, under a gamma prior with mean 1 and FAITH trials."""
        if not self._tried:
            return 1.0
        held = float(beliefs.of(self._tried).hold.sum())
        return min(1.0, (FAITH + held) / (FAITH + self._expected))
