"""Resuming an interrupted run: which one, whether it still is the same run, and what its
stored trials tell. Touches no array."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autotune.errors import RefusalError
from autotune.measure.phase import PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.trial import Status
from autotune.results import stored_run
from autotune.results.stored_run import StoredProblem
from autotune.store import RunRecord, TrialRecord
from autotune.tuning.preparation import GIVEN

if TYPE_CHECKING:
    from autotune.store.database import Store

UNFINISHED = ("running", "interrupted", "failed")
"""`running` is what `kill -9` leaves behind: under the array's lock no run is under way."""
IDLE = {"given", "host", "lab"}
"""Older versions did not store these. No run that has the first is resumed; the others say where it
was."""
WORDS = {
    "array": "the array",
    "workload": "the workload",
    "strategy": "the strategy",
    "trials": "the number of trials",
    "seed": "the seed",
    "careful": "--careful",
    "ram_budget_bytes": "the RAM budget in bytes",
    "destructive": "--destructive",
    "live": "the recovery under way",
    "ceilings": "the ceilings",
    "knobs": "the knobs or their values",
    "left_out": "what can be measured",
    "figures": "the figures",
}


def unfinished(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The newest run that came to no end, of runs with the newest first; one that has trials, if
    there is any."""
    cut = [run for run in runs if run.state in UNFINISHED and _can_resume(run)]
    return next((run for run in cut if run.trials), next(iter(cut), None))


def interrupted(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The very last run if it was cut from outside and left trials: worth a hint."""
    latest = runs[0] if runs else None
    if latest is None or latest.state not in ("running", "interrupted"):
        return None
    return latest if latest.trials and _can_resume(latest) else None


def _can_resume(run: RunRecord) -> bool:
    """What was given is soon measured again. What another version stored is refused by name."""
    try:
        return stored_run.read(run).strategy != GIVEN
    except RefusalError:
        return True


def difference(stored: StoredProblem, now: StoredProblem) -> str | None:
    """The first thing in which two problems of runs differ, in words; None if they are the same.
    Resolved ceilings are no difference: they follow from the baseline."""
    if stored.model_fields_set - IDLE != now.model_fields_set - IDLE:
        return "another version of autotune stored it"
    for knob, value in now.baseline.items():
        was = stored.baseline.get(knob)
        if was is not None and was != value:
            return f"{knob} was {was} when it started and is {value} now"
    if stored.write_budget_bytes is not None and now.write_budget_bytes is None:
        return "it had a write budget (--write-budget), which may change but not be left out"
    for name, what in WORDS.items():
        before, after = _comparable(stored, name), _comparable(now, name)
        if before == after:
            continue
        if name == "workload" and before["name"] != after["name"]:
            before, after = before["name"], after["name"]
        if isinstance(after, bool):
            before, after = ("on" if each else "off" for each in (before, after))
        if isinstance(after, str | int | float):
            return f"{what} was {before} and is {after} now"
        return f"{what} changed"
    return None


def _comparable(problem: StoredProblem, name: str) -> Any:
    if name == "workload":
        # They say how it is proven, not what a trial measures.
        return problem.workload.model_dump(exclude={"long_seconds", "counts"})
    if name == "figures":
        return [figure.without_limit() for figure in problem.figures]
    return getattr(problem, name)


def to_resume(
    store: "Store", uuid: str, fingerprint: str, problem: StoredProblem
) -> tuple[int, list[TrialRecord]]:
    """The number and the trials of the array's newest unfinished run.

    Raise RefusalError if there is none, or if going on with it would mix two different runs.
    """
    run = unfinished(store.runs(uuid))
    if run is None:
        raise RefusalError(
            "This array has no interrupted run, so there is nothing to resume; leave --resume out."
        )
    try:
        why = difference(stored_run.read(run), problem)
    except RefusalError:
        why = "another version of autotune stored it"
    if why is None and run.fingerprint != fingerprint:
        why = "the array's disks, its shape or the kernel changed"
    if why is not None:
        raise RefusalError(
            f"Run {run.id} cannot be resumed: {why}; "
            "give the options that it had, or start anew without --resume."
        )
    return run.id, store.trials(run.id)


def results(phases: Sequence[Phase], trial: TrialRecord) -> list[PhaseResult]:
    """What the phases of a stored trial showed that it measured itself and to the end. The time
    of each is its share of the trial's, by the phases' longest times, and what each wrote too."""
    ran = [phase for phase in phases if phase.name in trial.measured]
    whole = sum(phase.max_seconds for phase in ran)
    writing = sum(phase.max_seconds for phase in ran if phase.writes)
    if trial.status is not Status.COMPLETE:
        # The last one was ended early; its figures stand for nothing else.
        ran = [phase for phase in ran if phase.name != trial.measured[-1]]
    found = []
    for phase in ran:
        names = [figure.name for figure in phase.figures()]
        found.append(
            PhaseResult(
                phase.name,
                {name: trial.figures[name] for name in names if name in trial.figures},
                trial.seconds * phase.max_seconds / whole,
                True,
                tuple(name for name in names if name not in trial.figures),
                round(trial.bytes_written * phase.max_seconds / writing) if phase.writes else 0,
            )
        )
    return found
