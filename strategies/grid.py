"""A coarse grid, in shuffled order: what one would script."""

import random
from collections.abc import Sequence
from dataclasses import replace

from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Dimension, Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.strategies._lattice import Lattice
from autotune.strategies._observed import Observed


class Grid:
    """Proposes the allowed settings of a grid that is as fine as the budget fills; then None.

    The baseline's values are on the grid, so that there is something to try in a tight budget
    of RAM.
    """

    def __init__(self, problem: Problem) -> None:
        self._observed = Observed(problem)
        free = sum(len(dimension.choices) > 1 for dimension in problem.dimensions)
        levels = 2
        while free and (levels + 1) ** free <= problem.trials:
            levels += 1
        coarse = replace(
            problem,
            dimensions=tuple(
                replace(d, choices=_spread(d, levels, problem.baseline[d.knob]))
                for d in problem.dimensions
            ),
        )
        lattice = Lattice(coarse)
        rows = lattice.draw(random.Random(problem.seed), 2 * problem.trials + 2)
        self._settings = [lattice.setting(row) for row in rows if row != lattice.baseline]

    def ask(self) -> Setting | None:
        return next((s for s in self._settings if not self._observed.tried(s)), None)

    def tell(self, trial: Trial) -> None:
        self._observed.add(trial)

    def recommend(self) -> Recommendation:
        return self._observed.recommend()

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return self._observed.weigh(trials, setting, doubtful)


def _spread(dimension: Dimension, levels: int, baseline: Value) -> tuple[Value, ...]:
    """`levels` of an ordered knob's choices, evenly placed, the nearest to the baseline's
    replaced by it; all of a named knob's."""
    count = len(dimension.choices)
    if not dimension.ordered or count <= levels:
        return dimension.choices
    places = [(2 * i + 1) * count // (2 * levels) for i in range(levels)]
    at = dimension.choices.index(baseline)
    nearest = min(range(levels), key=lambda i: abs(places[i] - at))
    places[nearest] = at
    return tuple(dimension.choices[place] for place in places)
