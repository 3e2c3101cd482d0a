"""What a strategy is tried on: something to measure, whose truth is known to the judge only."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem
from autotune.problem.trial import Status, Trial

WORTH = 1.03
"""Instances whose optimum is under this have no gain to share out; they are judged apart."""


class Instance(Protocol):
    """A synthetic array, or a recorded grid replayed with its noise."""

    name: str
    kind: str
    optimum: float
    """The greatest true gain among the allowed settings that hold every ceiling (1.0: none)."""

    def problem(self, trials: int, careful: bool) -> Problem: ...

    def measure(self, setting: Setting, number: int, rng: random.Random) -> Mapping[str, Estimate]:
        """What the trial `number` of a run shows."""

    def truth(self, setting: Setting) -> Mapping[str, float]:
        """The true figures, without noise and drift."""


@dataclass(frozen=True)
class Verdict:
    """The truth about a setting: `gain` over the baseline, and the greatest ratio of a latency
    to its ceiling (`strain`; above 1 a ceiling is broken)."""

    gain: float
    strain: float

    @property
    def holds(self) -> bool:
        return self.strain <= 1.0


def judge(instance: Instance, problem: Problem, setting: Setting) -> Verdict:
    now, before = instance.truth(setting), instance.truth(problem.baseline)
    total = sum(figure.weight for figure in problem.figures)
    log_gain = sum(
        figure.weight / total * math.log(now[figure.name] / before[figure.name])
        for figure in problem.figures
        if figure.weight > 0
    )
    strains = [now[f.name] / f.ceiling for f in problem.figures if f.ceiling is not None]
    return Verdict(math.exp(log_gain), max(strains, default=0.0))


def aborted(
    figures: tuple[Figure, ...], shown: Mapping[str, Estimate], limit: float
) -> Mapping[str, Estimate] | None:
    """What is learnt until a latency passes `limit` times its ceiling; None if none does.

    The phases run in the order of the figures; the one that trips gives its latency only.
    """
    for figure in figures:
        if figure.ceiling is None or shown[figure.name].value <= limit * figure.ceiling:
            continue
        phases = list(dict.fromkeys(f.phase for f in figures))
        before = phases[: phases.index(figure.phase)]
        learnt = {f.name: shown[f.name] for f in figures if f.phase in before}
        return {**learnt, figure.name: shown[figure.name]}
    return None


def trial(
    instance: Instance,
    problem: Problem,
    setting: Setting,
    number: int,
    rng: random.Random,
    limit: float,
) -> Trial:
    """Measure as the tuner would, ending a trial that passes the abort limit."""
    shown = instance.measure(setting, number, rng)
    learnt = aborted(problem.figures, shown, limit)
    if learnt is None:
        return Trial(dict(setting), Status.COMPLETE, dict(shown))
    return Trial(dict(setting), Status.ABORTED, dict(learnt))
