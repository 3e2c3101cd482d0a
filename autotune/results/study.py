"""A run's settings, as its stored trials show them under some ceilings. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.errors import RefusalError
from autotune.problem import ceilings
from autotune.problem.figure import Figure
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, setting_key
from autotune.problem.trial import Status
from autotune.quantities import show_latency
from autotune.results import stored_run
from autotune.results.in_turn import InTurn, of_evidence, of_run, of_trials
from autotune.results.pareto import Point, points
from autotune.results.proof import original
from autotune.results.stored_run import StoredProblem
from autotune.store import RunRecord, TrialRecord


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
    baseline = setting_key(problem.baseline)
    if not any(
        setting_key(t.requested) == baseline and t.status is Status.COMPLETE for t in trials
    ):
        if run.state == "running":
            raise RefusalError(f"Run {run.id} is under way; wait for its end.")
        if not trials and run.state == "done":
            raise RefusalError(
                f"The trials of run {run.id} are not kept any more, since it is one of the older "
                "ones of its array; its profile, if it has one, is."
            )
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
    phases = {f.phase for f in figures if f.quantity in ceilings.QUANTITIES}
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
