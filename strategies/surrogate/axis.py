"""Where the values of a knob lie for a model."""

import math
from collections.abc import Sequence

import numpy as np
from skopt.space import Categorical, Real, Space

from autotune.problem.setting import Value
from autotune.problem.strategy import Dimension


class Axis:
    """Where the values of a knob lie: columns by value, from scikit-optimize's `Space`."""

    def __init__(self, dimension: Dimension) -> None:
        self.dimension = dimension
        self._columns: dict[Value, tuple[float, ...]]
        choices = dimension.choices
        if dimension.ordered:
            steps = _ladder([int(value) for value in choices])
            space = Space([Real(steps[0], steps[-1], "log-uniform", transform="normalize")])
            placed = space.transform([[step] for step in steps])
        else:
            space = Space([Categorical(choices, transform="onehot")])
            # Two different names are 1 apart, however many columns there are.
            placed = space.transform([[value] for value in choices])
            placed = np.asarray(placed) / (math.sqrt(2.0) if len(choices) > 2 else 1.0)
        self._columns = {
            value: tuple(float(x) for x in row)
            for value, row in zip(choices, np.asarray(placed), strict=True)
        }
        self.width = len(self._columns[choices[0]])

    def columns(self, value: Value) -> tuple[float, ...]:
        """A value's place. One that is not a choice takes the nearest choice's, or, if it is a
        name, none of the names' places."""
        known = self._columns.get(value)
        if known is not None:
            return known
        if not self.dimension.ordered or isinstance(value, str):
            return (0.0,) * self.width
        nearest = min(self.dimension.choices, key=lambda choice: abs(int(choice) - value))
        return self._columns[nearest]


def _ladder(values: Sequence[int]) -> list[float]:
    """Positive stand-ins for a log scale: what is not positive lies a step below what is."""
    positive = [float(value) for value in values if value > 0]
    ratio = (positive[-1] / positive[0]) ** (1 / (len(positive) - 1)) if len(positive) > 1 else 2.0
    below = len(values) - len(positive)
    first = positive[0] if positive else 1.0
    return [first / ratio ** (below - i) for i in range(below)] + positive
