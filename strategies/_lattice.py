"""The finite space of settings: draws, neighbours, and what `allowed` leaves of it.

A setting is held as a row: the index of its value among `choices`, for each dimension in order.
"""

import itertools
import math
import random
from collections.abc import Iterator

from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Problem

Row = tuple[int, ...]

SMALL = 4096
"""A space of at most so many settings is enumerated rather than sampled."""


class Lattice:
    """The settings of a problem, as rows. `baseline` is the baseline's row."""

    def __init__(self, problem: Problem) -> None:
        self.dimensions = problem.dimensions
        self.size = math.prod(len(dimension.choices) for dimension in problem.dimensions)
        self._allowed = problem.allowed
        self._index = [
            {value: i for i, value in enumerate(dimension.choices)}
            for dimension in problem.dimensions
        ]
        self._verdicts: dict[Row, bool] = {}
        row = self.row(problem.baseline)
        if row is None:
            raise ValueError("The baseline's values must be among the choices.")
        self.baseline: Row = row

    def setting(self, row: Row) -> dict[str, Value]:
        """The setting of a row, in plain Python values."""
        return {d.knob: d.choices[i] for d, i in zip(self.dimensions, row, strict=True)}

    def row(self, setting: Setting) -> Row | None:
        """The row of a setting; None if a value of it is not among the choices."""
        found = []
        for dimension, index in zip(self.dimensions, self._index, strict=True):
            value = setting.get(dimension.knob)
            if value is None or value not in index:
                return None
            found.append(index[value])
        return tuple(found)

    def allows(self, row: Row) -> bool:
        """Whether the exact filter lets the row be tried; asked once a row."""
        if row not in self._verdicts:
            self._verdicts[row] = self._allowed(self.setting(row))
        return self._verdicts[row]

    def all(self) -> Iterator[Row]:
        """Every allowed row, the last dimension fastest. Only for small spaces."""
        ranges = (range(len(dimension.choices)) for dimension in self.dimensions)
        return (row for row in itertools.product(*ranges) if self.allows(row))

    def draw(self, rng: random.Random, count: int) -> list[Row]:
        """Up to `count` different allowed rows, uniformly if the filter lets enough through.

        Where the filter refuses nearly everything, a random walk from the baseline stands in;
        it may return nothing, but always returns.
        """
        if self.size <= SMALL:
            rows = list(self.all())
            return rng.sample(rows, min(count, len(rows)))
        sizes = [len(dimension.choices) for dimension in self.dimensions]
        drawn: dict[Row, None] = {}
        for tries in range(20 * count):
            if len(drawn) >= count or (tries >= 1000 and len(drawn) * 100 < tries):
                break
            row = tuple(int(rng.random() * size) for size in sizes)
            if self.allows(row):
                drawn[row] = None
        if len(drawn) < count // 4 or not drawn:
            drawn.update(dict.fromkeys(self._walk(rng, count - len(drawn))))
        return list(drawn)

    def neighbours(self, row: Row) -> list[Row]:
        """The allowed rows that differ in one knob: by one step, or by any name."""
        found = []
        for place, dimension in enumerate(self.dimensions):
            here, last = row[place], len(dimension.choices) - 1
            steps = [here - 1, here + 1] if dimension.ordered else range(last + 1)
            for index in steps:
                if index != here and 0 <= index <= last:
                    other = (*row[:place], index, *row[place + 1 :])
                    if self.allows(other):
                        found.append(other)
        return found

    def _walk(self, rng: random.Random, count: int) -> Iterator[Row]:
        row = self.baseline
        for _ in range(count):
            around = self.neighbours(row)
            if not around:
                return
            row = rng.choice(around)
            yield row
