"""A profile from what the search saw alone, which says so. Pure."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from autotune.problem.figure import Estimate, Figure
from autotune.problem.profile import Evidence, FigureEvidence, Profile
from autotune.results.in_turn import Change
from autotune.results.pareto import Point
from autotune.results.stored_run import StoredProblem
from autotune.stats.verdict import NOTABLE
from autotune.store import TrialRecord


def unconfirmed(
    problem: StoredProblem,
    figures: Sequence[Figure],
    trials: Sequence[TrialRecord],
    point: Point,
    baseline: Point,
    name: str,
    in_turn: Mapping[str, Change],
) -> Profile:
    """The point's knobs that differ from the baseline, with what to expect of them under the
    ceilings of `figures`. `in_turn`: what a proof showed that it failed."""
    moved = problem.moved(point.setting) & baseline.figures.keys() & point.figures.keys()
    changed = {k: v for k, v in point.setting.items() if v != problem.baseline[k]}
    low, high = point.gain.interval
    return Profile(
        name=f"{problem.array.name}-{problem.workload.name}-{name}",
        created=datetime.now(UTC),
        proven_on=problem.array.proven_on,
        workload=problem.workload.name,
        knobs=changed,
        before={knob: problem.baseline[knob] for knob in changed},
        ram_bytes=problem.ram_bytes(point.setting),
        ram_budget_bytes=problem.ram_budget_bytes,
        evidence=Evidence(
            confirmed=False,
            gain=point.gain.value,
            low=low,
            high=high,
            trials=len(trials),
            seconds=sum(trial.seconds for trial in trials),
            figures={
                figure.name: _evidence(
                    figure, baseline.figures[figure.name], point.figures[figure.name]
                ).model_copy(update=in_turn.get(figure.name))
                for figure in figures
                if figure.name in moved
            },
        ),
    )


def _evidence(figure: Figure, before: Estimate, after: Estimate) -> FigureEvidence:
    ratio = Estimate(after.value / before.value, math.hypot(before.spread, after.spread))
    low, high = ratio.interval
    rises = low > 1 and ratio.value > math.exp(NOTABLE)
    falls = high < 1 and ratio.value < math.exp(-NOTABLE)
    conclusion: Literal["better", "no difference", "worse"] = "no difference"
    if rises or falls:
        conclusion = "better" if rises == (figure.kind == "throughput") else "worse"
    return FigureEvidence(
        before=before.value,
        after=after.value,
        ratio=ratio.value,
        low=low,
        high=high,
        conclusion=conclusion,
        ceiling=figure.limit({figure.name: before}),
    )
