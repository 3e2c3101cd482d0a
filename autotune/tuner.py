"""The run: baseline, search, confirm, decide."""

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from autotune import ceilings
from autotune.drift import Anchor, largest_drifts, without_drift
from autotune.errors import MeasurementError, StoppedError, SyncEndedError
from autotune.objective import Figures, broken_ceilings
from autotune.prepare import BASELINE_TRIALS, CONFIRM_ORDER, Preparation
from autotune.search import (
    Dimension,
    Estimate,
    Figure,
    Problem,
    Setting,
    Status,
    Strategy,
    StrategyFactory,
    setting_key,
)
from autotune.trials import Reporter, Trials
from autotune.verdict import Conclusion, Verdict, judge

BASELINE_EVERY = 6
"""After so many trials of the search the baseline comes back, so that a drift is seen."""
CANDIDATES = 2
"""So many winners are confirmed if the first breaks its ceiling when measured again."""
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
    seconds: float
    bytes_written: int
    write_budget: int | None
    saved_s: float
    unsupported: list[str]
    drifts: dict[str, float]
    """Figures of the baseline that drifted through the run: the largest ratio to the start."""
    grown_stripes: int
    """What the kernel made of the original stripe cache by itself in a phase; 0: not known."""


@dataclass(frozen=True)
class _Decision:
    keep: bool
    reason: str
    verdict: Verdict | None
    before: Figures
    after: Figures
    over: bool = False
    """Whether a broken ceiling is why not; the next best may hold it."""


def tune(
    preparation: Preparation, trials: Trials, factory: StrategyFactory, reporter: Reporter
) -> tuple[Result, Problem]:
    """Run to the end; the knobs are then wherever the last trial left them.

    Return the result, and the problem with its ceilings resolved. Raise RefusalError if a
    ceiling cannot be held even by the idle array, MeasurementError if the baseline shows nothing.
    """
    started = time.monotonic() - sum(record.seconds for record in trials.records)
    try:
        problem, winner, decision = _find(preparation, trials, factory, reporter)
    except SyncEndedError as error:
        if not trials.count("baseline"):
            raise StoppedError(f"Stopped: {error}.") from None
        problem, winner = _problem(preparation, trials, list(trials.figures)), {}
        before = _mean([r.figures for r in trials.records if r.role == "baseline"])
        decision = _Decision(False, str(error), None, before, before)
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
        time.monotonic() - started,
        trials.written.total,
        trials.written.budget,
        trials.saved_s,
        list(trials.unsupported),
        largest_drifts(_anchors(trials)),
        trials.grown_stripes,
    )
    return result, problem


def _find(
    preparation: Preparation, trials: Trials, factory: StrategyFactory, reporter: Reporter
) -> tuple[Problem, Setting, _Decision]:
    """Baseline, search, confirm, decide. Raise SyncEndedError when the real sync that is tuned
    is over before that."""
    before = _measure_baseline(preparation, trials, reporter)
    figures = ceilings.resolve(preparation.figures, preparation.options.ceilings, before)
    trials.resolved(figures)
    problem = _problem(preparation, trials, figures)
    strategy = _informed(factory, problem, trials)
    reporter.step("Searching")
    while True:
        if _baseline_is_due(trials) and not _lacking(preparation, trials):
            trials.run("baseline", preparation.baseline, preparation.phases)
            strategy = _informed(factory, problem, trials)
        if trials.count("search") >= problem.trials or _lacking(preparation, trials):
            break
        setting = strategy.ask()
        if setting is None:
            break
        record = trials.run("search", setting, preparation.phases, reuse=True)
        strategy.tell(record.trial)
    reason = "no setting promises an improvement"
    if not trials.count("search"):
        reason = _lacking(preparation, trials) or reason
    winner, decision = preparation.baseline, _Decision(False, reason, None, before, before)
    for _ in range(CANDIDATES):
        recommended = strategy.recommend().setting
        if setting_key(recommended) in (setting_key(winner), setting_key(preparation.baseline)):
            break
        winner = recommended
        decision = _confirm(preparation, trials, winner, figures, reporter)
        if not decision.over or _lacking(preparation, trials):
            break
        reporter.step("The best found broke its ceiling when measured again")
        strategy = _informed(factory, problem, trials)
    return problem, winner, decision


def _measure_baseline(
    preparation: Preparation, trials: Trials, reporter: Reporter
) -> dict[str, Estimate]:
    reporter.step("Measuring the array as it is")
    records = [r for r in trials.records if r.role == "baseline"][:BASELINE_TRIALS]
    while len(records) < BASELINE_TRIALS:
        records.append(trials.run("baseline", preparation.baseline, preparation.phases))
        # A ceiling that cannot be held is to be heard of as soon as it can be known.
        ceilings.resolve(preparation.figures, preparation.options.ceilings, records[-1].figures)
    before = _mean([record.figures for record in records])
    missing = [f.name for f in preparation.figures if f.weight > 0 and f.name not in before]
    if missing:
        raise MeasurementError(
            f"The baseline gave no figure for {', '.join(missing)}; the phase is too short for "
            "this array: raise its max_seconds in the workload."
        )
    return before


def _problem(preparation: Preparation, trials: Trials, figures: list[Figure]) -> Problem:
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
    )


def _anchors(trials: Trials) -> list[Anchor]:
    """The baseline's measurements through the run."""
    return [Anchor(r.middle_s, r.figures) for r in trials.records if r.role == "baseline"]


def _informed(factory: StrategyFactory, problem: Problem, trials: Trials) -> Strategy:
    """A strategy that has been told all trials, as they would have been without drift."""
    strategy, anchors = factory(problem), _anchors(trials)
    for record in trials.records:
        figures = without_drift(record.figures, record.middle_s, anchors)
        strategy.tell(dataclasses.replace(record.trial, figures=figures))
    return strategy


def _baseline_is_due(trials: Trials) -> bool:
    returned = trials.count("baseline") - BASELINE_TRIALS
    return trials.count("search") // BASELINE_EVERY > returned


def _lacking(preparation: Preparation, trials: Trials) -> str:
    """What there is too little of for another trial and the confirmation of a winner, in words;
    empty if there is enough."""
    names = [phase.name for phase in preparation.phases]
    needed_s = sum(trials.seconds[name] for name in names) * (1 + len(CONFIRM_ORDER))
    if time.monotonic() + needed_s >= trials.deadline:
        return "there was no time to try anything else; allow more (--time)"
    left = trials.written.left
    needed = sum(trials.wrote[name] for name in names) * (1 + len(CONFIRM_ORDER)) * WRITE_MARGIN
    if left is not None and needed > left:
        return "the write budget allows to try nothing else; allow more (--write-budget)"
    return ""


def _confirm(
    preparation: Preparation,
    trials: Trials,
    winner: Setting,
    figures: list[Figure],
    reporter: Reporter,
) -> _Decision:
    """Measure the winner and the baseline in turn, in the phases where they can differ at all."""
    reporter.step("Confirming the winner against the original settings, in turn")
    baseline = preparation.baseline
    phases = tuple(
        p for p in preparation.phases if trials.relevant(p, winner) != trials.relevant(p, baseline)
    )
    sides: dict[str, list[Figures]] = {"winner": [], "baseline": []}
    anchors = _anchors(trials)
    earlier = [without_drift(anchor.figures, anchor.time_s, anchors) for anchor in anchors]
    for side in CONFIRM_ORDER:
        setting = winner if side == "winner" else baseline
        record = trials.run(f"confirm-{side}", setting, phases)
        if record.status is not Status.COMPLETE:
            return _Decision(
                False, f"the winner did not apply again: {record.reason}", None, {}, {}
            )
        sides[side].append(record.figures)
    verdict = judge(figures, sides["winner"], sides["baseline"], earlier)
    after, before = _mean(sides["winner"]), _mean(sides["baseline"])
    names = {phase.name for phase in phases}
    unknown = [
        f.name
        for f in figures
        if f.phase in names
        and (f.weight > 0 or f.ceiling is not None)
        and not (f.name in after and f.name in before)
    ]
    if unknown:
        reason = f"{unknown[0]} could not be measured on both sides, so nothing is claimed"
        return _Decision(False, reason, verdict, before, after)
    broken = broken_ceilings(figures, after)
    if broken:
        reason = f"the best found broke its ceiling for {broken[0].name} when measured again"
        return _Decision(False, reason, verdict, before, after, over=True)
    if verdict.overall.conclusion is Conclusion.BETTER:
        return _Decision(True, "better beyond noise", verdict, before, after)
    calmer = [
        f
        for f in broken_ceilings(figures, before)
        if verdict.figures[f.name].conclusion is Conclusion.BETTER
    ]
    if calmer:
        # A ceiling is a condition, not a wish: it is kept at whatever cost in speed.
        slower = "slower, but " if verdict.overall.conclusion is Conclusion.WORSE else ""
        reason = f"{slower}it holds the ceilings, which the original settings break"
        return _Decision(True, reason, verdict, before, after)
    reason = "the best found does not differ from the original settings beyond noise"
    return _Decision(False, reason, verdict, before, after)


def _mean(measured: Sequence[Figures]) -> dict[str, Estimate]:
    """Each figure's geometric mean over repeated measurements that all have it. The spread is
    what the repeats show, and no less than what the spreads within them make of the mean."""
    means = {}
    for name in measured[0]:
        if not all(name in m for m in measured):
            continue
        logs = [math.log(m[name].value) for m in measured]
        within = math.sqrt(sum(m[name].spread ** 2 for m in measured)) / len(logs)
        between = stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
        means[name] = Estimate(math.exp(fmean(logs)), max(within, between))
    return means
