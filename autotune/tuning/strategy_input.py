"""What a strategy is told: the problem, and the trials so far without drift."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Protocol

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Dimension, Problem, Strategy, StrategyFactory
from autotune.problem.trial import Trial
from autotune.stats.drift import Anchor, without_drift
from autotune.store import TrialRecord
from autotune.tuning.preparation import Preparation
from autotune.tuning.relevance import figures_moved
from autotune.tuning.trials import Trials


class Measured(Protocol):
    """Trials, and among them those of the baseline through the run."""

    @property
    def records(self) -> Sequence[TrialRecord]: ...
    @property
    def anchors(self) -> list[Anchor]: ...


def problem_of(preparation: Preparation, trials: Trials, figures: list[Figure]) -> Problem:
    """The problem, with what is known of it: `figures` have their ceilings."""
    dimensions = tuple(
        Dimension(
            knob.name,
            preparation.choices[knob.name],
            knob.ordered,
            frozenset(figures_moved(knob, preparation.phases)),
        )
        for knob in preparation.knobs
    )
    return Problem(
        dimensions,
        tuple(figures),
        preparation.baseline,
        preparation.allowed,
        preparation.options.trials,
        preparation.options.seed,
        preparation.careful,
        preparation.hints,
        dict(trials.phases.seconds),
        preparation.earlier,
        carried=True,
    )


def informed(factory: StrategyFactory, problem: Problem, trials: Measured) -> Strategy:
    """A strategy that has been told all trials, as they would have been without drift."""
    strategy = factory(problem)
    for trial in trials_without_drift(trials):
        strategy.tell(trial)
    return strategy


def trials_without_drift(trials: Measured) -> Iterator[Trial]:
    """What a strategy is told, as it would have been at the start."""
    anchors = trials.anchors
    measured_s: dict[tuple[str, Estimate], float] = {}
    for record in trials.records:
        if record.role.startswith("long-"):
            # Of another length, so nothing that a strategy models.
            continue
        figures: dict[str, Estimate] = {}
        for name, shown in record.figures.items():
            if name.partition(".")[0] in record.measured:
                measured_s[name, shown] = record.middle_s
            # What was carried over is from the time when it was measured.
            time_s = measured_s.get((name, shown), record.middle_s)
            figures |= without_drift({name: shown}, time_s, anchors)
        yield dataclasses.replace(record.trial, figures=figures)


def without(problem: Problem, setting: Setting) -> Problem:
    """The problem in which this setting is no answer."""
    key = setting_key(setting)
    return dataclasses.replace(
        problem, allowed=lambda other: setting_key(other) != key and problem.allowed(other)
    )
