"""The part of a report that shows what was tried: settings as points, and trials in order. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.problem.figure import Estimate
from autotune.problem.objective import broken_ceilings, gain
from autotune.problem.setting import setting_key, show_setting
from autotune.problem.trial import ROLES, Status
from autotune.report import named_answers
from autotune.results import solve
from autotune.results.pareto import Point, PooledTrials, as_said
from autotune.results.proof import original, proofs
from autotune.results.study import Study
from autotune.store import RunRecord, TrialRecord

Document = dict[str, Any]


def points(study: Study, run: RunRecord, records: Sequence[TrialRecord]) -> list[Document]:
    """Each setting that was measured in full: all its trials pooled."""
    named = solve.named(run, records)
    answers: dict[int, list[str]] = {}
    for name in named_answers.NAMES:
        point: Point | None = getattr(named, name) if named else None
        if point is not None:
            answers.setdefault(point.trials[0], []).append(name)
    return [
        {
            "trials": list(point.trials),
            "setting": show_setting(point.setting, study.problem.baseline),
            "original": point is study.points[0],
            "gain": interval(point.gain),
            "p99s": {
                f.name: point.figures.get(f.name, study.points[0].figures[f.name]).value
                for f in study.every
                if f.limited
            },
            "holds": point.holds(study.every, study.points[0]),
            "in_turn": point.in_turn,
            "confirmed": point.confirmed,
            "answers": answers.get(point.trials[0], []),
        }
        for point in study.points
    ]


def in_turn(
    study: Study, records: Sequence[TrialRecord], refused: Sequence[Mapping[str, Any]]
) -> list[Document]:
    """What was measured in turn with the original settings, kept or not, in the order of time, with
    the gain of its proof; of older runs, which did not store that, of its trials alone. `refused`:
    what the run said of those that were not kept."""
    reasons = {setting_key(each["setting"]): each["reason"] for each in refused}
    gains = {key: interval(gain) for key, gain in _gains(study).items()}
    return [
        {
            "setting": show_setting(proof.setting, study.problem.baseline),
            "trials": list(proof.trials),
            "pairs": len(proof.trials) // 2,
            "gain": gains.get(setting_key(proof.setting)),
            "reason": reasons.get(setting_key(proof.setting), ""),
        }
        for proof in proofs(records)
    ]


def trials(study: Study, records: Sequence[TrialRecord]) -> list[Document]:
    """In order, each with its own gain, and the best setting so far of those that held the
    ceilings, by all that was measured of it. The array's drift is taken out, as of the points:
    those of the proof stand for themselves, since they were measured beside each other."""
    before, best, found = original(records, study.confirmed), None, []
    known = _gains(study)
    proven_by = {number: proof for proof in proofs(records) for number in proof.trials}
    pool = PooledTrials(study.problem, records)
    baseline = pool.figures(study.problem.baseline)
    for trial in records:
        moved = study.problem.moved(trial.requested)
        # What no changed setting can move is as it was, where the trial did not measure it.
        same = {n: Estimate(e.value, 0.0) for n, e in before.items() if n not in moved}
        if (proof := proven_by.get(trial.number)) is not None:
            own = as_said(trial.figures, before, proof.before)
        else:
            own = as_said(pool.of(trial), before, baseline)
        pooled = as_said(pool.figures(trial.requested), before, baseline)
        figures = {**trial.figures, **pooled, **same, **own}
        shown = gain(study.every, figures, before)
        if setting_key(trial.requested) == setting_key(study.problem.baseline):
            # What one measurement says of them is noise.
            holds = study.points[0].holds(study.every, study.points[0])
        else:
            holds = not broken_ceilings(study.every, figures, before)
        counts = trial.status is Status.COMPLETE and holds
        if shown is not None and counts:
            best = max(best or 0.0, known.get(setting_key(trial.requested), shown).value)
        found.append(
            {
                "number": trial.number,
                "minute": (trial.started - records[0].started).total_seconds() / 60,
                "seconds": trial.seconds,
                "role": ROLES.get(trial.role, trial.role),
                "status": trial.status.value,
                "reason": trial.reason,
                "setting": show_setting(trial.requested, study.problem.baseline),
                "gain": interval(shown) if shown else None,
                "holds": counts,
                "best": best,
            }
        )
    return found


def _gains(study: Study) -> dict[object, Estimate]:
    """What is known of each setting's gain: by its proof, if it was measured in turn."""
    gains: dict[object, Estimate] = {setting_key(p.setting): p.gain for p in study.points}
    return gains | {key: shown.gain for key, shown in study.in_turn.items()}


def interval(estimate: Estimate) -> Document:
    """An estimate with the ends of its 95 % interval."""
    low, high = estimate.interval
    return {"value": estimate.value, "low": low, "high": high}
