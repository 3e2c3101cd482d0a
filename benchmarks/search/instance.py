"""What a strategy is tried on: something to measure, whose truth is known to the judge only."""

import math
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem
from autotune.problem.trial import Status, Trial
from autotune.stats.bounds import ROUGH_SPREAD

LEAST_S = 3.0
"""No trial is ended before."""
SAMPLES = 0.1
"""The requests that it takes to be certain of a share of slow ones that is above 1 %, times its
square, at 3.1 standard deviations."""
RATE = 15.0
"""Of a probe's requests a second, what they are worth: 60, of which slow ones come in bursts."""
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
    strains = strain(problem.figures, now, before)
    return Verdict(math.exp(log_gain), max(strains.values(), default=0.0))


def strain(
    figures: tuple[Figure, ...], now: Mapping[str, float], before: Mapping[str, float]
) -> dict[str, float]:
    """Each limited figure, as a multiple of its limit."""
    baseline = {name: Estimate(value, 0.0) for name, value in before.items()}
    return {
        f.name: now[f.name] / limit for f in figures if (limit := f.limit(baseline)) is not None
    }


def certain_after(over: float) -> float:
    """Seconds of a phase until a p99 of so many times its ceiling is certain to be over it, as
    the tuner judges that (`certain.surely_over`), for a latency whose tail is exponential."""
    if over <= 1.0:
        return math.inf
    slow = math.exp(math.log(0.01) / over) - 0.01
    return max(LEAST_S, SAMPLES / slow**2 / RATE)


def aborted(
    problem: Problem, shown: Mapping[str, Estimate], before: Mapping[str, float]
) -> tuple[Figure, float] | None:
    """The latency that ends the trial, being surely over its ceiling, and after how many seconds
    of its phase; None if none does. The phases run in the order of the figures."""
    strains = strain(problem.figures, {n: e.value for n, e in shown.items()}, before)
    for figure in problem.figures:
        seconds = certain_after(strains.get(figure.name, 0.0))
        if seconds < problem.seconds[figure.phase]:
            return figure, seconds
    return None


@dataclass(frozen=True)
class Tried:
    """A trial as it is told, the truth about its setting, and what it did to the array: seconds
    over a ceiling, the same times the part by which it was over, and all its seconds."""

    trial: Trial
    truth: Verdict
    over_s: float
    harm_s: float
    seconds: float


def measured(
    instance: Instance,
    problem: Problem,
    setting: Setting,
    number: int,
    rng: random.Random,
    only: Collection[str] | None = None,
) -> Tried:
    """Measure as the tuner would: a trial of the search that is surely over its ceiling is ended,
    and tells no more of that phase than roughly the latency; one that measures `only` some
    phases, for a proof, is not."""
    shown = instance.measure(setting, number, rng)
    before = instance.truth(problem.baseline)
    strains = strain(problem.figures, instance.truth(setting), before)
    phases = list(
        dict.fromkeys(f.phase for f in problem.figures if only is None or f.phase in only)
    )
    ended = aborted(problem, shown, before) if only is None else None
    learnt = {f.name: shown[f.name] for f in problem.figures if f.phase in phases}
    status = Status.COMPLETE
    seconds = {phase: problem.seconds[phase] for phase in phases}
    if ended is not None:
        figure, after_s = ended
        whole = phases[: phases.index(figure.phase)]
        seconds = {**{phase: seconds[phase] for phase in whole}, figure.phase: after_s}
        learnt = {f.name: shown[f.name] for f in problem.figures if f.phase in whole}
        learnt[figure.name] = Estimate(shown[figure.name].value, ROUGH_SPREAD)
        status = Status.ABORTED
    over_s = harm_s = 0.0
    for phase, spent_s in seconds.items():
        worst = max((by for n, by in strains.items() if n.startswith(f"{phase}.")), default=0.0)
        over_s += spent_s if worst > 1.0 else 0.0
        harm_s += spent_s * max(worst - 1.0, 0.0)
    truth = judge(instance, problem, setting)
    told = Trial(dict(setting), status, learnt)
    return Tried(told, truth, over_s, harm_s, sum(seconds.values()))
