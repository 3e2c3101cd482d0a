"""What the trials of a run showed of each setting so far, proven or not. Pure."""

from collections.abc import Callable, Container, Sequence

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures
from autotune.problem.setting import Setting, setting_key
from autotune.results.pareto import Point, points
from autotune.results.stored_run import StoredProblem
from autotune.store import TrialRecord

LOOKS_BETTER = 1.03
"""A gain that a trial has to show before it is worth a proof that the strategy did not ask for."""


def over(figures: Sequence[Figure], shown: Figures, before: Figures) -> list[Figure]:
    """The figures that are over their limit by more than their noise."""
    found = []
    for figure in figures:
        limit, estimate = figure.limit(before), shown.get(figure.name)
        if limit is None or estimate is None:
            continue
        doubt = before[figure.name].spread if figure.ratio is not None else 0.0
        spread = (estimate.spread**2 + doubt**2) ** 0.5
        if Estimate(estimate.value, spread).interval[0] > limit:
            found.append(figure)
    return found


def best_seen(
    problem: StoredProblem,
    figures: Sequence[Figure],
    records: Sequence[TrialRecord],
    allowed: Callable[[Setting], bool],
    refused: Container[object] = (),
) -> Point | None:
    """The setting that looked best in a trial, if it looked better than noise may and is not
    surely over a ceiling; None if there is none."""
    found = points(problem, figures, records, None)
    if not found:
        return None
    good = [
        point
        for point in found[1:]
        if setting_key(point.setting) not in refused
        and allowed(point.setting)
        and point.gain.value >= LOOKS_BETTER
        and point.sure_gain > 1.0
        and not over(figures, point.figures, found[0].figures)
    ]
    return max(good, key=lambda point: point.sure_gain, default=None)
