"""Another answer from a run's stored trials, without the array. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.problem import ceilings
from autotune.problem.figure import Figure
from autotune.problem.objective import broken_ceilings
from autotune.problem.profile import Profile
from autotune.problem.setting import setting_key
from autotune.problem.trial import Status
from autotune.quantities import show_latency
from autotune.results import stored_run
from autotune.results.ended_early import allowed_by, sentence
from autotune.results.pareto import Named, Point, calmest, fastest, front
from autotune.results.study import Study, study_of
from autotune.results.unproven_profile import unconfirmed
from autotune.store import RunRecord, TrialRecord

Name = Literal["throughput", "balanced", "latency"]
NAMES: tuple[Name, ...] = get_args(Name)


@dataclass(frozen=True)
class Solution:
    """One answer: `point` beside the `baseline`, under the ceilings of `figures`. `profile` is
    None if the answer is the baseline: there is nothing to apply."""

    run: int
    name: Name
    point: Point
    baseline: Point
    figures: tuple[Figure, ...]
    ram_bytes: int
    original_ram_bytes: int
    profile: Profile | None
    uncounted: tuple[int, ...] = ()
    """Trials that were ended early under the run's ceilings, though these would allow them;"""
    again: str = ""
    """and the options with which a run would measure them whole."""
    decided: bool = False
    """Whether it is what the run ended with."""


def _pick(study: Study, name: Name) -> Point | None:
    if name == "throughput":
        return _faster_than_proven(study, fastest(study.points, study.asked))
    if name == "latency":
        return calmest(study.points, study.every)
    if study.decided is not None:
        wanted = setting_key(study.decided)
        return next((p for p in study.points if setting_key(p.setting) == wanted), None)
    return fastest(study.points, study.every)


def _faster_than_proven(study: Study, point: Point | None) -> Point | None:
    """The point, or what was proven if that measured at least as fast: the spread of a proof is
    wider than that of a few trials, which would let a slower setting come first."""
    baseline = study.points[0]
    proven = next((p for p in study.points[1:] if p.confirmed), None)
    if point is None or proven is None or not proven.holds(study.asked, baseline):
        return point
    return proven if proven.gain.value >= point.gain.value else point


def named(run: RunRecord, trials: Sequence[TrialRecord]) -> Named | None:
    """The three answers of a run under its own ceilings; None if it ended too early to have any,
    or another version stored it."""
    try:
        study = study_of(run, trials)
    except AutotuneError:
        return None
    return Named(*(_pick(study, name) for name in NAMES))


def pareto(run: RunRecord, trials: Sequence[TrialRecord]) -> list[Point]:
    """The run's settings that no other beats in gain without losing in latency, the calmest
    first; none if `named` has none."""
    try:
        return front(study_of(run, trials).points)
    except AutotuneError:
        return []


def solve(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    asked: Sequence[ceilings.Ceiling] = (),
    name: str = "balanced",
) -> Solution:
    """The named answer under ceilings that replace the run's (none: the run's own).

    Raise UsageError for a name or a phase that does not exist, RefusalError if no trial held the
    ceilings, saying which limit the nearest one held.
    """
    if name not in NAMES:
        raise UsageError(f'There is no answer "{name}"; there are {", ".join(NAMES)}.')
    study = study_of(run, trials, asked)
    if run.state not in ("done", "running") and all(t.role == "baseline" for t in trials):
        raise RefusalError(
            f"Run {run.id} ended before any other combination was tried, so there is nothing to "
            "choose from; `autotune run --resume` goes on with one that was interrupted."
        )
    point = _pick(study, name)
    baseline = study.points[0]
    figures = study.every if name != "throughput" else study.asked
    uncounted, again = allowed_by(figures, trials, baseline.figures)
    if point is None:
        reason = f"{_why_none(study, name, trials)} {sentence(uncounted, again)}"
        raise RefusalError(reason.rstrip())
    return Solution(
        run.id,
        name,
        point,
        baseline,
        figures,
        study.problem.ram_bytes(point.setting),
        study.problem.ram_bytes(study.problem.baseline),
        None if point is baseline else _profile(run, trials, study, point, name),
        uncounted,
        again,
        name == "balanced" and study.decided is not None,
    )


def _trials(numbers: Sequence[int]) -> str:
    return f"trial{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _why_none(study: Study, name: str, trials: Sequence[TrialRecord]) -> str:
    """Name the lowest limits that a trial did hold."""
    figures = study.asked if name == "throughput" else study.every
    baseline = study.points[0].figures
    limits = {f.name: limit for f in figures if (limit := f.limit(baseline))}
    shown = {_trials(point.trials): point.figures for point in study.points[1:]}
    shown["the original settings"] = study.points[0].figures
    # Those too that were ended early for it.
    shown |= {_trials([t.number]): t.figures for t in trials if t.status is Status.ABORTED}
    nearest, seen = min(
        ((who, seen) for who, seen in shown.items() if limits.keys() <= seen.keys()),
        key=lambda each: max(each[1][name].value / limit for name, limit in limits.items()),
    )
    broken = broken_ceilings(figures, seen, baseline)
    if not broken:
        return (
            "Every combination that held the ceilings is slower than the original settings, which "
            "broke them; ask for another answer (--name balanced)."
        )
    over = ", ".join(
        f"{f.name} {show_latency(seen[f.name].value)} where {show_latency(limits[f.name])} is "
        "allowed"
        for f in broken
    )
    return (
        f"No trial held the ceilings; the nearest, {nearest}, showed {over}: "
        "allow at least that (--p99-ceiling)."
    )


def _profile(
    run: RunRecord, trials: Sequence[TrialRecord], study: Study, point: Point, name: str
) -> Profile:
    """The portable form of an answer; with the run's own evidence where it was confirmed."""
    proven = stored_run.profile(run)
    if not point.confirmed or proven is None:
        shown = study.in_turn.get(setting_key(point.setting))
        changes = shown.changes if shown else {}
        baseline = study.points[0]
        return unconfirmed(study.problem, study.every, trials, point, baseline, name, changes)
    limits = {f.name: f.limit(study.points[0].figures) for f in study.every}
    figures = {
        n: e.model_copy(update={"ceiling": limits.get(n)})
        for n, e in proven.evidence.figures.items()
    }
    evidence = proven.evidence.model_copy(update={"figures": figures})
    return proven.model_copy(update={"evidence": evidence})
