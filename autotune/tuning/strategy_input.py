"""What a strategy is told: the problem, the trials so far as they would have been without drift,
and what of its answer matters."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Dimension, Problem, Strategy, StrategyFactory
from autotune.problem.trial import Trial
from autotune.stats.drift import without_drift
from autotune.tuning.prepare import Preparation
from autotune.tuning.trials import Trials

if TYPE_CHECKING:
    from autotune.strategies.surrogate.importance import KnobShare


def problem_of(preparation: Preparation, trials: Trials, figures: list[Figure]) -> Problem:
    """The problem, with what is known of it: `figures` have their ceilings."""
    dimensions = tuple(
        Dimension(
            knob.name,
            preparation.choices[knob.name],
            knob.ordered,
            frozenset(f.name for f in figures if trials.moves(knob.name, f)),
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
        dict(trials.seconds),
        preparation.earlier,
        carried=True,
    )


def informed(factory: StrategyFactory, problem: Problem, trials: Trials) -> Strategy:
    """A strategy that has been told all trials, as they would have been without drift."""
    strategy = factory(problem)
    for trial in _without_drift(trials):
        strategy.tell(trial)
    return strategy


def _without_drift(trials: Trials) -> Iterator[Trial]:
    anchors = trials.anchors
    measured_s: dict[tuple[str, Estimate], float] = {}
    for record in trials.records:
        if record.role.startswith("long-"):
            # Of another length, so nothing that a strategy models.
            continue
        figures: dict[str, Estimate] = {}
        for name, shown in record.figures.items():
            # What was carried over is from the time when it was measured.
            time_s = measured_s.setdefault((name, shown), record.middle_s)
            figures |= without_drift({name: shown}, time_s, anchors)
        yield dataclasses.replace(record.trial, figures=figures)


def without(problem: Problem, setting: Setting) -> Problem:
    """The problem in which this setting is no answer."""
    key = setting_key(setting)
    return dataclasses.replace(
        problem, allowed=lambda other: setting_key(other) != key and problem.allowed(other)
    )


def what_matters(
    problem: Problem, trials: Trials, setting: Setting, doubtful: bool = False
) -> tuple[Setting, "tuple[KnobShare, ...]", float]:
    """The setting without the changes that nothing shows to bring anything, what each change
    brings, and the expected loss (of the log gain, or of P(hold)). With `doubtful`, changes that
    only probably bring something stay."""
    # Takes a second, and only a run that has found something needs it.
    from autotune.strategies.surrogate import importance  # noqa: PLC0415

    sure = importance.LIKELY if doubtful else importance.SURE
    told = list(_without_drift(trials))
    shares, loss = importance.weighed(problem, told, setting, sure)
    back = {share.knob: share.before for share in shares if not share.needed}
    return {**setting, **back}, shares, loss
