"""The run: baseline, search, confirm, decide."""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.errors import MeasurementError, RefusalError, StoppedError, SyncEndedError
from autotune.problem import ceilings
from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, limits
from autotune.problem.setting import Setting
from autotune.problem.strategy import KnobShare, Problem, StrategyFactory
from autotune.problem.trial import Status
from autotune.quantities import show_latency
from autotune.results.proof import is_of_proof, mean, original
from autotune.stats.drift import largest_drifts
from autotune.stats.sequential import Held, ceilings_held
from autotune.stats.verdict import Verdict
from autotune.tuning.confirm import Decision, confirm
from autotune.tuning.long_load import GROWS, LongLoad, long_seconds
from autotune.tuning.preparation import BASELINE_TRIALS, Preparation
from autotune.tuning.prove import prove
from autotune.tuning.reasons import (
    breaks,
    broke,
    ceilings_relaxed,
    nothing_better,
    still_broken,
    varied,
)
from autotune.tuning.remaining import lacking
from autotune.tuning.remarks import Remarks, remarks
from autotune.tuning.reporter import Reporter
from autotune.tuning.search import SHORT, Search
from autotune.tuning.strategy_input import problem_of
from autotune.tuning.trials import Trials


@dataclass(frozen=True)
class Result:
    """What a run found. `winner` is the baseline unless `keep`: it was confirmed to be better,
    and holds its ceilings. `verdict` is None if nothing was worth confirming; `before` and
    `after` are then what the baseline showed, or empty where the winner did not apply.
    `bytes_written` has the scratch file in it."""

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
    """The trials of the search."""
    seconds: float
    bytes_written: int
    write_budget: int | None
    saved_s: float
    unsupported: list[str]
    drifts: dict[str, float]
    """Figures of the baseline that drifted through the run: the largest ratio to the start."""
    grown_stripes: int
    """What the kernel made of the original stripe cache by itself in a phase; 0: not known."""
    shares: tuple[KnobShare, ...]
    """What each change brought, by the models; those not needed were left out of the winner."""
    held: Mapping[str, Held] = field(default_factory=dict)
    """What the proof showed of each ceiling."""
    pairs: int = 0
    """How often winner and original settings were measured in turn."""
    proposed: Setting = field(default_factory=dict)
    """What is kept; if nothing is, what was measured in turn last."""
    long: LongLoad = field(default_factory=LongLoad)
    words: Remarks = field(default_factory=Remarks)
    refused: tuple[tuple[Setting, Decision], ...] = ()
    """What else was measured in turn, in order, and why it is not kept."""


@dataclass(frozen=True)
class _Found:
    problem: Problem
    winner: Setting
    decision: Decision
    shares: tuple[KnobShare, ...] = ()
    words: Remarks = field(default_factory=Remarks)
    refused: tuple[tuple[Setting, Decision], ...] = ()


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
        found = _find(preparation, trials, factory, reporter)
    except SyncEndedError as error:
        if not trials.count("baseline"):
            raise StoppedError(f"Stopped: {error}.") from None
        before = original(trials.records)
        ended = Decision(False, str(error), None, before, before)
        found = _Found(problem_of(preparation, trials, list(trials.figures)), {}, ended)
    decision = found.decision
    result = Result(
        winner=dict(found.winner if decision.keep else preparation.baseline),
        baseline=dict(preparation.baseline),
        keep=decision.keep,
        reason=decision.reason,
        verdict=decision.verdict,
        figures=list(found.problem.figures),
        before=decision.before,
        after=decision.after,
        trials=len(trials.records),
        searched=trials.count("search"),
        seconds=time.monotonic() - started,
        bytes_written=trials.phases.written.total,
        write_budget=trials.phases.written.budget,
        saved_s=trials.saved_s,
        unsupported=list(trials.phases.unsupported),
        drifts=largest_drifts(trials.originals),
        grown_stripes=trials.phases.grown_stripes,
        shares=found.shares if decision.keep else (),
        held=decision.held,
        pairs=decision.pairs,
        proposed=dict(found.winner),
        long=decision.long,
        words=found.words,
        refused=found.refused,
    )
    return result, found.problem


def _find(
    preparation: Preparation, trials: Trials, factory: StrategyFactory | None, reporter: Reporter
) -> _Found:
    """Baseline, search, confirm, decide. Raise SyncEndedError when the real sync that is tuned
    is over before that."""
    if GROWS in preparation.baseline:
        long_s = long_seconds(preparation, {GROWS: 0}, preparation.phases)
        expected = trials.progress.proof
        trials.progress.proof = dataclasses.replace(expected, long_s=long_s)
    cut_in_proof = bool(trials.records) and is_of_proof(trials.records[-1])
    before = _measure_baseline(preparation, trials, reporter)
    figures = ceilings.resolve(preparation.figures, preparation.options.ceilings, before)
    trials.set_ceilings(figures, before)
    problem = problem_of(preparation, trials, figures)
    given = preparation.options.given
    if given is not None:
        proposed = {**preparation.baseline, **given.setting}
        decision = confirm(preparation, trials, proposed, figures, reporter)
        return _Found(problem, proposed, decision)
    assert factory is not None
    for text in breaks(figures, before):
        reporter.notice(text)
    search = Search(preparation, trials, factory, problem, before)
    # A run that was cut in a proof goes on with that.
    if not cut_in_proof:
        reporter.step(_searching(figures, before))
        search.search()
    found = prove(preparation, trials, search, reporter)
    shown = original(trials.records, found.winner if found.kept else None)
    nothing = Decision(False, nothing_better(trials, search), None, shown, shown)
    decision = found.decision or nothing
    if not decision.keep:
        reason = decision.reason + still_broken(figures, shown, trials, preparation.baseline)
        decision = dataclasses.replace(decision, reason=reason)
    notes = [*broke(figures, before, shown), *varied(figures, trials)]
    if search.relaxed:
        notes.append(ceilings_relaxed(search.relaxed, before))
        if decision.verdict is not None:
            compared = decision.verdict.figures
            held = ceilings_held(figures, compared, decision.before, decision.after)
            decision = dataclasses.replace(decision, held=held)
    words = remarks(
        preparation,
        trials.records,
        figures=search.figures,
        winner=found.winner if decision.keep else None,
        verdicts=search.verdicts,
        stopped=search.stopped,
    )
    words = dataclasses.replace(words, notes=(*notes, *words.notes))
    return _Found(problem, found.winner, decision, found.shares, words, found.others)


def _searching(figures: list[Figure], before: Figures) -> str:
    """What begins, with the limits that hold from now on."""
    held = limits(figures, before)
    shown = ", ".join(f"{name} {show_latency(limit)}" for name, limit in held.items())
    return f"Searching; ceilings: {shown}" if shown else "Searching"


def _measure_baseline(
    preparation: Preparation, trials: Trials, reporter: Reporter
) -> dict[str, Estimate]:
    reporter.step("Measuring the array as it is")
    records = [r for r in trials.records if r.role == "baseline"][:BASELINE_TRIALS]
    resumed = len(records) == BASELINE_TRIALS
    if not (resumed and lacking(preparation, trials, SHORT)):
        if not preparation.live:
            trials.warm_up()
        if resumed:
            # What has drifted since the cut is not to be taken for what a setting does.
            trials.run("baseline", preparation.baseline, preparation.phases)
    while len(records) < BASELINE_TRIALS:
        records.append(trials.run("baseline", preparation.baseline, preparation.phases))
        if records[-1].status is not Status.COMPLETE:
            raise RefusalError(records[-1].reason)
        # A ceiling that cannot be held is refused as soon as it can be known.
        shown = mean([record.figures for record in records])
        ceilings.resolve(preparation.figures, preparation.options.ceilings, shown)
        if reason := lacking(preparation, trials, SHORT):
            raise RefusalError(f"The array was measured as it is, and {reason}.")
    before = mean([record.figures for record in records])
    missing = [f.name for f in preparation.figures if f.weight > 0 and f.name not in before]
    if missing:
        raise MeasurementError(
            f"The baseline gave no figure for {', '.join(missing)}; the phase is too short for "
            "this array: raise its max_seconds in the workload."
        )
    return before
