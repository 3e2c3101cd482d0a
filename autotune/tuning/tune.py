"""The run: baseline, search, confirm, decide."""

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.errors import MeasurementError, RefusalError, StoppedError, SyncEndedError
from autotune.problem import ceilings
from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem, StrategyFactory
from autotune.quantities import show_latency, show_seconds
from autotune.stats.drift import is_moving, largest_drifts
from autotune.stats.verdict import Verdict
from autotune.tuning.confirm import Decision, confirm, mean
from autotune.tuning.prepare import BASELINE_TRIALS, CONFIRM_ORDER, LEAST_TRIALS, Preparation
from autotune.tuning.strategy_input import informed, problem_of, what_matters, without
from autotune.tuning.trials import Reporter, Trials

if TYPE_CHECKING:
    from autotune.strategies.surrogate.importance import KnobShare

BASELINE_EVERY = 6
"""After so many trials of the search the baseline comes back, so that a drift is seen."""
WHILE_MOVING = 2
"""Or after so many, if it had moved the last time: how long that lasts is to be known."""
CANDIDATES = 3
"""So many winners are confirmed if those before break a ceiling when measured again."""
TIME_MARGIN = 1.1
"""No two trials take the same time."""
WRITE_MARGIN = 1.5
"""A faster setting writes more in the same time than any before it: by so much at most, hopefully,
and if not, the measurement is ended at the budget."""


@dataclass(frozen=True)
class Result:
    """What a run found. `winner` is the baseline unless `keep`: it was confirmed to be better,
    and holds its ceilings. `verdict` is None if nothing was worth confirming; `before` and
    `after` are then what the baseline showed. `bytes_written` has the scratch file in it."""

    winner: Setting
    baseline: Setting
    keep: bool
    reason: str
    verdict: Verdict | None
    figures: list[Figure]
    before: Figures
    after: Figures
    trials: int
    searched: int
    """Those of the trials that were neither the baseline's nor a proof."""
    seconds: float
    bytes_written: int
    write_budget: int | None
    saved_s: float
    unsupported: list[str]
    drifts: dict[str, float]
    """Figures of the baseline that drifted through the run: the largest ratio to the start."""
    grown_stripes: int
    """What the kernel made of the original stripe cache by itself in a phase; 0: not known."""
    shares: "tuple[KnobShare, ...]"
    """What each change brought, by the models; those not needed were left out of the winner."""


def tune(
    preparation: Preparation, trials: Trials, factory: StrategyFactory | None, reporter: Reporter
) -> tuple[Result, Problem]:
    """Run to the end; the knobs are then wherever the last trial left them. `factory` is None if
    there is nothing to search, since a setting is given.

    Return the result, and the problem with its ceilings resolved. Raise RefusalError if a
    ceiling cannot be held even by the idle array, MeasurementError if the baseline shows nothing.
    """
    started = time.monotonic() - sum(record.seconds for record in trials.records)
    try:
        problem, winner, decision, shares = _find(preparation, trials, factory, reporter)
    except SyncEndedError as error:
        if not trials.count("baseline"):
            raise StoppedError(f"Stopped: {error}.") from None
        problem, winner = problem_of(preparation, trials, list(trials.figures)), {}
        before = mean([r.figures for r in trials.records if r.role == "baseline"])
        decision, shares = Decision(False, str(error), None, before, before), ()
    result = Result(
        dict(winner if decision.keep else preparation.baseline),
        dict(preparation.baseline),
        decision.keep,
        decision.reason,
        decision.verdict,
        list(problem.figures),
        decision.before,
        decision.after,
        len(trials.records),
        trials.count("search"),
        time.monotonic() - started,
        trials.written.total,
        trials.written.budget,
        trials.saved_s,
        list(trials.unsupported),
        largest_drifts(trials.anchors),
        trials.grown_stripes,
        shares if decision.keep else (),
    )
    return result, problem


def _find(
    preparation: Preparation, trials: Trials, factory: StrategyFactory | None, reporter: Reporter
) -> "tuple[Problem, Setting, Decision, tuple[KnobShare, ...]]":
    """Baseline, search, confirm, decide. Raise SyncEndedError when the real sync that is tuned
    is over before that."""
    before = _measure_baseline(preparation, trials, reporter)
    figures = ceilings.resolve(preparation.figures, preparation.options.ceilings, before)
    trials.resolved(figures)
    problem = problem_of(preparation, trials, figures)
    given = preparation.options.given
    if given is not None:
        proposed = {**preparation.baseline, **given.setting}
        return problem, proposed, confirm(preparation, trials, proposed, figures, reporter), ()
    assert factory is not None
    strategy = informed(factory, problem, trials)
    reporter.step("Searching")
    # A run that was cut while it confirmed goes on with that.
    while not trials.count("confirm-winner"):
        if _baseline_is_due(trials) and not _lacking(preparation, trials):
            trials.run("baseline", preparation.baseline, preparation.phases)
            strategy = informed(factory, problem, trials)
        if trials.count("search") >= problem.trials or _lacking(preparation, trials):
            break
        setting = strategy.ask()
        if setting is None:
            break
        record = trials.run("search", setting, preparation.phases, reuse=True)
        strategy.tell(record.trial)
    if _since_baseline(trials) and is_moving(trials.anchors) and not _lacking(preparation, trials):
        # Else the last trials would be taken for what they were under the drift.
        trials.run("baseline", preparation.baseline, preparation.phases)
        strategy = informed(factory, problem, trials)
    reason = "no setting promises an improvement"
    if not trials.count("search"):
        reason = _lacking(preparation, trials) or reason
    winner, decision = preparation.baseline, Decision(False, reason, None, before, before)
    shares: tuple[KnobShare, ...] = ()
    left, home = problem, setting_key(preparation.baseline)
    for _ in range(CANDIDATES):
        recommended = strategy.recommend().setting
        if setting_key(recommended) == home:
            break
        recommended, found = what_matters(left, trials, recommended)
        if setting_key(recommended) == home:
            break
        winner, shares = recommended, found
        decision = confirm(preparation, trials, winner, figures, reporter)
        if not decision.over or _lacking(preparation, trials):
            break
        reporter.step("The best found broke its ceiling when measured again")
        left = without(left, winner)
        strategy = informed(factory, left, trials)
    if not decision.keep:
        reason = decision.reason + _still_broken(figures, before, trials)
        decision = dataclasses.replace(decision, reason=reason)
    return problem, winner, decision, shares


def _still_broken(figures: list[Figure], before: Figures, trials: Trials) -> str:
    """Which ceiling the original settings break, and how near a trial came to it; or nothing."""
    broken = broken_ceilings(figures, before, before)
    if not broken:
        return ""
    name, ceiling = broken[0].name, broken[0].ceiling or 0.0
    nearest = min(
        (record for record in trials.records if name in record.figures),
        key=lambda record: record.figures[name].value,
    )
    return (
        f"; the original settings break the ceiling of {show_latency(ceiling)} for {name} "
        f"({show_latency(before[name].value)}), and the lowest that a trial showed is "
        f"{show_latency(nearest.figures[name].value)} (trial {nearest.number})"
    )


def _measure_baseline(
    preparation: Preparation, trials: Trials, reporter: Reporter
) -> dict[str, Estimate]:
    reporter.step("Measuring the array as it is")
    records = [r for r in trials.records if r.role == "baseline"][:BASELINE_TRIALS]
    if len(records) < BASELINE_TRIALS and not preparation.live:
        trials.warm_up()
    while len(records) < BASELINE_TRIALS:
        records.append(trials.run("baseline", preparation.baseline, preparation.phases))
        # A ceiling that cannot be held is to be heard of as soon as it can be known.
        ceilings.resolve(preparation.figures, preparation.options.ceilings, records[-1].figures)
        if reason := _lacking(preparation, trials):
            raise RefusalError(f"The array was measured as it is, and {reason}.")
    before = mean([record.figures for record in records])
    missing = [f.name for f in preparation.figures if f.weight > 0 and f.name not in before]
    if missing:
        raise MeasurementError(
            f"The baseline gave no figure for {', '.join(missing)}; the phase is too short for "
            "this array: raise its max_seconds in the workload."
        )
    return before


def _baseline_is_due(trials: Trials) -> bool:
    every = WHILE_MOVING if is_moving(trials.anchors) else BASELINE_EVERY
    return _since_baseline(trials) >= every


def _since_baseline(trials: Trials) -> int:
    """The trials of the search since the baseline was measured."""
    roles = [record.role for record in trials.records]
    last = max((i for i, role in enumerate(roles) if role == "baseline"), default=0)
    return roles[last:].count("search")


def _lacking(preparation: Preparation, trials: Trials) -> str:
    """What there is too little of for another trial and the confirmation of a winner, in words;
    empty if there is enough."""
    names = [phase.name for phase in preparation.phases]
    trial_s = sum(trials.seconds[name] for name in names)
    if time.monotonic() + trial_s * (1 + len(CONFIRM_ORDER)) >= trials.deadline:
        least_s = trial_s * LEAST_TRIALS * TIME_MARGIN
        return (
            f"a trial takes {show_seconds(trial_s)} here, so there is no time to try and prove "
            f"anything else; allow {show_seconds(least_s)} or more (--time)"
        )
    left = trials.written.left
    needed = sum(trials.wrote[name] for name in names) * (1 + len(CONFIRM_ORDER)) * WRITE_MARGIN
    if left is not None and needed > left:
        return "the write budget allows to try nothing else; allow more (--write-budget)"
    return ""
