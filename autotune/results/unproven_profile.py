"""A profile from what the search saw alone, which says so. Pure."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from autotune.problem.figure import SPREADS_95, Estimate, Figure
from autotune.problem.profile import Evidence, FigureEvidence, Profile
from autotune.results.in_turn import Change
from autotune.results.pareto import Point
from autotune.results.stored_run import StoredProblem
from autotune.stats.verdict import Comparison
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
    half = SPREADS_95 * math.hypot(before.spread, after.spread)
    higher_is_better = figure.kind == "throughput"
    compared = Comparison.of(math.log(after.value / before.value), half, higher_is_better)
    return FigureEvidence(
        before=before.value,
        after=after.value,
        ratio=compared.ratio,
        low=compared.low,
        high=compared.high,
        conclusion=compared.conclusion.value,
        ceiling=figure.limit({figure.name: before}),
    )
