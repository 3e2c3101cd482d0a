"""A recorded grid (`benchmarks.search.record`), replayed with the noise that it was measured with.

The truth is the mean of all that was measured of a combination. A trial shows one of these
measurements of each phase, as much further from their mean as the noise is larger than their own
spread. The ceilings are where a given share of the settings holds them.

What is greatest of many noisy means is so by luck, too. Where the setting that is best in all
passes but one gained next to nothing in that one, there is nothing to gain.
"""

import itertools
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Dimension, Problem
from benchmarks.search.curves import Array
from benchmarks.search.instance import WORTH, judge
from benchmarks.search.synthetic import MARGIN

LIMITED = "p99"
HOLDING = (0.65, 0.85, 1.0)
"""The shares of settings that hold; a seed has one of them. Where fewer do, raid6-hdd has nothing
to gain: what is faster there is a large stripe cache, with the slowest p99 of all beside it."""


class RecordedGrid:
    """One seed of a recorded array: the ceilings and the draws follow from it."""

    kind = "recorded"

    def __init__(self, path: Path, seed: int) -> None:
        self._data: dict[str, Any] = json.loads(path.read_text())
        self._seed = seed
        self.baseline: dict[str, Value] = self._data["baseline"]
        self.name = f"{path.stem}-{seed}"
        self._phases: dict[str, Any] = self._data["phases"]
        self._cells = {
            (cell["phase"], tuple(cell["values"])): cell["measured"] for cell in self._data["cells"]
        }
        self._ram = {
            (name, value): cost
            for name, knob in self._data["knobs"].items()
            for value, cost in zip(knob["choices"], knob["ram_bytes"], strict=True)
        }
        self._truth = {key: _means(measured) for key, measured in self._cells.items()}
        self.ceiling = self._find_ceiling(HOLDING[seed % len(HOLDING)])
        self.optimum = self._find_optimum()

    def allowed(self, setting: Setting) -> bool:
        ram = sum(self._ram[name, value] for name, value in setting.items())
        return self._measured(setting) and ram <= self._data["ram_budget_bytes"]

    def problem(self, trials: int, careful: bool) -> Problem:
        figures = self.figures
        dimensions = tuple(
            Dimension(
                name,
                tuple(knob["choices"]),
                knob["ordered"],
                frozenset(f.name for f in figures if name in self._phases[f.phase]["moved_by"]),
            )
            for name, knob in self._data["knobs"].items()
        )
        seconds = {name: phase["seconds"] for name, phase in self._phases.items()}
        return Problem(
            dimensions=dimensions,
            figures=figures,
            baseline=self.baseline,
            allowed=self.allowed,
            trials=trials,
            seed=self._seed,
            careful=careful,
            seconds=seconds,
        )

    @property
    def figures(self) -> tuple[Figure, ...]:
        found = []
        for name in self.truth(self.baseline):
            phase, quantity = name.split(".")
            if quantity == LIMITED:
                limit = self.truth(self.baseline)[name] * self.ceiling
                found.append(Figure(name, phase, "latency", 0.0, limit))
            elif quantity == "throughput":
                weight = self._phases[phase]["weight"]
                found.append(Figure(name, phase, "throughput", weight))
        return tuple(found)

    def truth(self, setting: Setting) -> dict[str, float]:
        return {
            name: value
            for phase in self._phases
            for name, value in self._truth[self._key(phase, setting)].items()
        }

    def measure(self, setting: Setting, number: int, rng: random.Random) -> Mapping[str, Estimate]:
        found = {}
        for phase in self._phases:
            key = self._key(phase, setting)
            measured, truth = self._cells[key], self._truth[key]
            # Of n draws, those around their own mean have (n - 1) / n of the variance.
            apart = math.sqrt(len(measured) / max(len(measured) - 1, 1))
            for name, (value, spread) in rng.choice(measured).items():
                middle = truth.get(name, value)
                found[name] = Estimate(middle * (value / middle) ** apart, spread)
        return found

    def landscape(self) -> tuple[Array, Array]:
        """The log gain and whether the ceilings hold, for every allowed setting."""
        problem = self.problem(0, careful=False)
        verdicts = [judge(self, problem, setting) for setting in self._every()]
        gains = np.log([verdict.gain for verdict in verdicts])
        return gains, np.array([verdict.holds for verdict in verdicts])

    def _find_optimum(self) -> float:
        settings, (gains, holds) = self._every(), self.landscape()
        held = [setting for setting, hold in zip(settings, holds, strict=True) if hold]
        passes = min(len(measured) for measured in self._cells.values())
        if passes < 2:
            raise ValueError(
                "What was measured once cannot tell luck from gain: record two passes."
            )
        each = np.array([[self._gain_in(n, setting) for setting in held] for n in range(passes)])
        others = each.sum(axis=0) - each
        proven = fmean(one[np.argmax(rest)] for one, rest in zip(each, others, strict=True))
        return math.exp(float(gains[holds].max())) if math.exp(proven) >= WORTH else 1.0

    def _gain_in(self, number: int, setting: Setting) -> float:
        """The log gain of the setting over the baseline, as one pass measured both."""
        total = sum(figure.weight for figure in self.figures)
        log_gain = 0.0
        for figure in self.figures:
            if figure.weight > 0:
                now, before = (
                    self._cells[self._key(figure.phase, one)][number][figure.name][0]
                    for one in (setting, self.baseline)
                )
                log_gain += figure.weight / total * math.log(now / before)
        return log_gain

    def _every(self) -> list[Setting]:
        """Every allowed setting."""
        knobs = self._data["knobs"]
        settings = (
            dict(zip(knobs, values, strict=True))
            for values in itertools.product(*(knob["choices"] for knob in knobs.values()))
        )
        return [setting for setting in settings if self.allowed(setting)]

    def _measured(self, setting: Setting) -> bool:
        """Whether all was measured that was of the baseline: a check too slow to be seen to move
        has no speed."""
        return all(
            self._truth.get(self._key(phase, setting), {}).keys()
            >= self._truth[self._key(phase, self.baseline)].keys()
            for phase in self._phases
        )

    def _key(self, phase: str, setting: Setting) -> tuple[str, tuple[Value, ...]]:
        return phase, tuple(setting[name] for name in self._phases[phase]["moved_by"])

    def _find_ceiling(self, share: float) -> float:
        """The common factor over the baseline's latencies at which the share of settings holds."""
        before = self.truth(self.baseline)
        limited = [name for name in before if name.split(".")[1] == LIMITED]
        every = map(self.truth, self._every())
        worst = [max(now[name] / before[name] for name in limited) for now in every]
        return max(MARGIN, float(np.quantile(worst, share)))


def _means(measured: list[dict[str, list[float]]]) -> dict[str, float]:
    """The geometric mean of each figure that all the measurements have."""
    names = [name for name in measured[0] if all(name in one for one in measured)]
    return {name: math.exp(fmean(math.log(one[name][0]) for one in measured)) for name in names}
