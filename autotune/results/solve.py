"""Another answer from a run's stored trials, without the array. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.problem import ceilings
from autotune.problem.figure import Figure
from autotune.problem.objective import broken_ceilings
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, setting_key
from autotune.problem.trial import Status
from autotune.quantities import show_latency
from autotune.results import stored_run
from autotune.results.ended_early import given_up, sentence
from autotune.results.in_turn import InTurn, of_evidence, of_run, of_trials
from autotune.results.pareto import Named, Point, calmest, fastest, front, points
from autotune.results.proof import original
from autotune.results.stored_run import StoredProblem
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


@dataclass(frozen=True)
class Study:
    """A run's points under some ceilings, the baseline's first: `every` has the figures with the
    default ceilings too, `asked` with the user's alone. `decided` is what the run ended with, None
    if it came to no end."""

    problem: StoredProblem
    points: list[Point]
    every: tuple[Figure, ...]
    asked: tuple[Figure, ...]
    decided: Setting | None
    confirmed: Setting | None = None
    """What the run proved and kept, if anything."""
    in_turn: Mapping[object, InTurn] = field(default_factory=dict)
    """What was measured in turn, kept or not, by the setting's key."""


def study_of(
    run: RunRecord, trials: Sequence[TrialRecord], asked: Sequence[ceilings.Ceiling] = ()
) -> Study:
    """A run under the ceilings given, or its own if there are none.

    Raise UsageError if a ceiling fits no phase, RefusalError if the run has no baseline or the
    idle array already breaks a ceiling."""
    problem = stored_run.read(run)
    home = setting_key(problem.baseline)
    if not any(setting_key(t.requested) == home and t.status is Status.COMPLETE for t in trials):
        if run.state == "running":
            raise RefusalError(f"Run {run.id} is under way; wait for its end.")
        why = f" Why it ended: {run.outcome.rstrip('.')}." if run.outcome else ""
        raise RefusalError(
            f"Run {run.id} ended before the original settings were measured, so there is nothing "
            f"to compare with; tune the array again.{why}"
        )
    ceilings.check_phases(asked, problem.figures)
    profile = stored_run.profile(run)
    winner = _settled(problem, profile) if profile else None
    confirmed = winner if profile is not None and profile.evidence.confirmed else None
    limits = tuple(asked) or problem.ceilings
    every = problem.figures
    phases = {limit.phase for limit in limits}
    if asked or not any(figure.limited for figure in problem.figures):
        bare = [figure.without_limit() for figure in problem.figures]
        before = original(trials, confirmed)
        _check_measured(run, asked, [f for f in bare if f.name in before])
        try:
            every = tuple(ceilings.resolve(bare, limits, before))
        except RefusalError as error:
            if not any(limit.limit_ns for limit in asked):
                raise
            lowest = _lowest(study_of(run, trials), phases)
            if lowest is None:
                raise
            raise RefusalError(
                f"{str(error).rstrip('.')}: the lowest that a trial held is {show_latency(lowest)}."
            ) from None
    users = tuple(f if None in phases or f.phase in phases else f.without_limit() for f in every)
    _refuse_if_baseline_lacks(run, [f for f in every if f.weight or f.limited], trials)
    in_turn = of_trials(trials, every) | of_run(run.said, every)
    if profile is not None and confirmed is not None:
        in_turn[setting_key(confirmed)] = of_evidence(profile.evidence, every)
    decided = None
    if run.state == "done" and not asked:
        decided = winner or problem.baseline
    found = [_as_proven(p, in_turn) for p in points(problem, every, trials, confirmed)]
    return Study(problem, found, every, users, decided, confirmed, in_turn)


def _settled(problem: StoredProblem, profile: Profile) -> Setting:
    """What a run ended with. What was in force before need not have been a knob of this run."""
    settled = {k: v for k, v in profile.knobs.items() if k in problem.baseline}
    return {**problem.baseline, **settled}


def _as_proven(point: Point, in_turn: Mapping[object, InTurn]) -> Point:
    """What was measured in turn is as sure as its proof says, which is what it is chosen by."""
    shown = in_turn.get(setting_key(point.setting))
    return replace(point, gain=shown.gain, latency=shown.latency) if shown else point


def _refuse_if_baseline_lacks(
    run: RunRecord, figures: Sequence[Figure], trials: Sequence[TrialRecord]
) -> None:
    """Raise RefusalError if a figure was never measured with the original settings."""
    known = original(trials)
    missing = [figure.name for figure in figures if figure.name not in known]
    if missing:
        raise RefusalError(
            f"Run {run.id} has no {missing[0]} of the original settings, so there is nothing to "
            "compare with; raise max_seconds in the workload and tune again."
        )


def _check_measured(
    run: RunRecord, asked: Sequence[ceilings.Ceiling], figures: Sequence[Figure]
) -> None:
    """Raise RefusalError if a ceiling is about latencies that have no p99: nothing is known of
    whether it holds."""
    phases = {f.phase for f in figures if f.name.partition(".")[2] in ceilings.QUANTITIES}
    for ceiling in asked:
        if not phases or ceiling.phase not in (None, *phases):
            where = f' of the phase "{ceiling.phase}"' if ceiling.phase else ""
            raise RefusalError(
                f"Run {run.id} has no p99{where}, having seen too few requests, so nothing can be "
                "said of a ceiling; raise max_seconds in the workload and tune again."
            )


def _lowest(study: Study, phases: set[str | None]) -> float | None:
    """The lowest limit in ns, the same for each of the phases (None: all), that a trial held;
    None if the run had no ceilings there."""
    tails = [f.name for f in study.every if f.limited and (None in phases or f.phase in phases)]
    if not tails:
        return None
    return min(max(point.figures[name].value for name in tails) for point in study.points)


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
    home = study.points[0]
    proven = next((p for p in study.points[1:] if p.confirmed), None)
    if point is None or proven is None or not proven.holds(study.asked, home):
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
            f"Run {run.id} ended before any other setting was tried, so there is nothing to choose "
            "from; `autotune run --resume` goes on with one that was interrupted."
        )
    point = _pick(study, name)
    baseline = study.points[0]
    figures = study.every if name != "throughput" else study.asked
    uncounted, again = given_up(figures, trials, baseline.figures)
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
            "Every setting that held the ceilings is slower than the original settings, which "
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
        home = study.points[0]
        return unconfirmed(study.problem, study.every, trials, point, home, name, changes)
    limits = {f.name: f.limit(study.points[0].figures) for f in study.every}
    figures = {
        n: e.model_copy(update={"ceiling": limits.get(n)})
        for n, e in proven.evidence.figures.items()
    }
    evidence = proven.evidence.model_copy(update={"figures": figures})
    return proven.model_copy(update={"evidence": evidence})
