"""The part of a report that sets the original settings beside what was compared with them. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, Literal

from autotune.problem.course import Course
from autotune.problem.figure import Estimate
from autotune.problem.profile import Evidence
from autotune.problem.setting import show_setting
from autotune.problem.trial import Status
from autotune.report.tables import is_quiet
from autotune.results.proof import PROOF_BASELINE, PROOF_ROLES, PROOF_WINNER, original, proof_of
from autotune.results.study import Study
from autotune.stats.histogram import total
from autotune.store import TrialRecord

Document = dict[str, Any]
Courses = Mapping[int, Mapping[str, Course]]
MOST_POINTS = 100
"""Of a curve: more cannot be seen."""
_BASELINE = "baseline"
LONG = {"long-baseline": "before", "long-winner": "after"}


@dataclass(frozen=True)
class Sides:
    """The trials of both sides, by number; `setting`: what the other side was, empty if nothing
    was measured in turn with the original settings; `kept`: whether that is the answer."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    setting: str
    kept: bool

    def document(self) -> Document:
        return asdict(self)


def sides(study: Study, trials: Sequence[TrialRecord], kept: bool) -> Sides:
    """What the answer's measurements in turn were, or the newest; the original settings alone if
    there are none."""
    proof, roles = proof_of(trials, study.confirmed), {t.number: t.role for t in trials}
    if proof is None:
        done = (t for t in trials if t.role == _BASELINE and t.status is Status.COMPLETE)
        return Sides(tuple(t.number for t in done), (), "", False)
    # Until the next proof, all is of this one.
    later = (n for n, role in roles.items() if role in PROOF_ROLES and n > proof.trials[-1])
    own = range(proof.trials[0], min(later, default=max(roles) + 1))
    long = {
        side: [n for n, role in roles.items() if LONG.get(role) == side and n in own]
        for side in _SIDES
    }
    before = [n for n in proof.trials if roles[n] != PROOF_WINNER]
    after = [n for n in proof.trials if roles[n] == PROOF_WINNER]
    return Sides(
        (*before, *long["before"]),
        (*after, *long["after"]),
        show_setting(proof.setting, study.problem.baseline),
        kept,
    )


_SIDES: tuple[Literal["before", "after"], ...] = ("before", "after")


def figures(
    study: Study,
    trials: Sequence[TrialRecord],
    said: Mapping[str, Any],
    evidence: Evidence | None,
) -> list[Document]:
    """Each figure of the original settings, with what became of it: as the run said, or else as
    the profile has it. `after` is null where the changed settings can move nothing."""
    before, held, rows = original(trials, study.confirmed), said.get("ceilings", {}), []
    for figure in study.every:
        if figure.name not in before:
            continue
        after, change = None, None
        if said:
            told = said["figures"].get(figure.name, {})
            after, change = told.get("after"), told.get("change")
        elif evidence and figure.name in evidence.figures:
            shown = evidence.figures[figure.name]
            after = shown.after
            change = shown.model_dump(include={"ratio", "low", "high", "conclusion"})
        rows.append(
            {
                "name": figure.name,
                "kind": figure.kind,
                "counts": figure.weight > 0,
                "quiet": is_quiet(figure.name, change["conclusion"] if change else None),
                "before": before[figure.name].value,
                "after": after if change else None,
                "change": change,
                "reaches": before[figure.name].value * change["high"] if change else None,
                "ceiling": figure.limit(before),
                "ratio": figure.ratio,
                "held": held.get(figure.name),
            }
        )
    return rows


def drift(study: Study, trials: Sequence[TrialRecord]) -> list[Document]:
    """What the original settings showed through the run, relative to the first time."""
    anchors = [
        t for t in trials if t.role in (_BASELINE, PROOF_BASELINE) and t.status is Status.COMPLETE
    ]
    found = []
    for figure in study.every:
        seen = [
            (t, t.figures[figure.name])
            for t in anchors
            if figure.name in t.figures and figure.phase in t.measured
        ]
        if len(seen) < 2 or not (figure.weight > 0 or figure.limited):
            continue
        first = seen[0][1].value
        found.append(
            {"figure": figure.name, "points": [_moved(t, e, first, trials[0]) for t, e in seen]}
        )
    return found


def _moved(trial: TrialRecord, shown: Estimate, first: float, start: TrialRecord) -> Document:
    low, high = shown.interval
    return {
        "trial": trial.number,
        "minute": (trial.started - start.started).total_seconds() / 60,
        "value": shown.value / first,
        "low": low / first,
        "high": high / first,
    }


def distributions(courses: Courses, compared: Sides) -> list[Document]:
    """For each phase with a probe: which share of its requests took longer than so many ns."""
    found = []
    for phase in _phases(courses, compared):
        for kind in ("reads", "writes"):
            document: Document = {"phase": phase, "requests": kind}
            for side in _SIDES:
                parts = [getattr(course, kind) for course in _of(courses, compared, side, phase)]
                counts = total(parts)
                if counts:
                    document[side] = {
                        "requests": sum(counts.values()),
                        "slower": _slower(counts),
                    }
            if "before" in document:
                found.append(document)
    return found


def _slower(counts: Mapping[int, int]) -> list[tuple[int, float]]:
    """The share of samples above each latency, at no more points than can be seen."""
    ordered = sorted(counts.items())
    whole = sum(counts.values())
    above = [whole - passed for passed in accumulate(n for _, n in ordered)]
    step = math.log(whole + 1) / MOST_POINTS
    kept: list[tuple[int, float]] = [(ordered[0][0], 1.0)]
    for (ns, _), left in zip(ordered, above, strict=True):
        if left and math.log(kept[-1][1] / (left / whole)) >= step:
            kept.append((ns, left / whole))
    return [*kept, (ordered[-1][0], 1 / whole)]


def seconds(courses: Courses, compared: Sides) -> list[Document]:
    """What each phase did, interval by interval, the first time on each side."""
    found = []
    for phase in _phases(courses, compared):
        document: Document = {"phase": phase}
        for side in _SIDES:
            for course in _of(courses, compared, side, phase)[:1]:
                if shown := _second_by_second(course):
                    document[side] = shown
        if "before" in document:
            found.append(document)
    return found


def _second_by_second(course: Course) -> Document | None:
    """None if it shows nothing: neither a load that moved anything, nor a probe throughout."""
    count = len(course.seconds)
    slowest = course.slowest_ns if len(course.slowest_ns) == count else ()
    if not count or not (any(course.bytes) or slowest):
        return None
    return {
        # The time that passed until the end of each interval.
        "end_s": [round(s, 1) for s in accumulate(course.seconds)],
        "rate": [round(moved / s) for moved, s in zip(course.bytes, course.seconds, strict=True)],
        "slowest_ns": list(slowest),
        "stripes": list(course.stripes) if len(course.stripes) == count else [],
    }


def _of(courses: Courses, compared: Sides, side: str, phase: str) -> list[Course]:
    numbers = compared.before if side == "before" else compared.after
    return [courses[n][phase] for n in numbers if phase in courses.get(n, {})]


def _phases(courses: Courses, compared: Sides) -> list[str]:
    """Those that the original settings' side has, in their order."""
    names = (name for n in compared.before for name in courses.get(n, {}))
    return list(dict.fromkeys(names))
