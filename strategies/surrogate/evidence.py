"""What a problem's figures are known to be: the trials told, the models fitted to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Problem
from autotune.problem.trial import Status, Trial
from autotune.strategies.surrogate.axis import Axis
from autotune.strategies.surrogate.gaussian_process import (
    Array,
    FigureKernel,
    FigureModel,
    Layout,
    Prior,
)
from autotune.strategies.surrogate.shapes import KnownShapes

CONSTANT = 0.5
"""The spread of a figure's general level around the baseline's, in logs."""
LENGTH = (math.log(0.8), 0.8)
"""Length-scale of an ordered knob, whose ladder is [0, 1] long: centre of its log, and spread."""
NAMED_LENGTH = (math.log(1.5), 0.7)
ALONE = {"throughput": (math.log(0.03), 0.5), "latency": (math.log(0.06), 0.5)}
"""Amplitude² of what a knob does by itself, likewise. Latencies range further: a check took a
probe's p99 from 16 to 198 ms."""
TOGETHER = {"throughput": (math.log(0.2), 0.5), "latency": (math.log(0.5), 0.5)}
"""Amplitude² of what the knobs only do together."""
NOISE = {"throughput": 0.05, "latency": 0.08}
"""Noise between trials that the spread within one does not show, in logs."""
NOISE_SPREAD = 1.0
FAR_OVER = -3.0
"""Spreads from the ceiling to a baseline that cannot be said to hold it."""
WORTH = 5.0
"""How many trials all earlier ones together are worth, at most."""
LEAST_SPREAD = 0.005
"""No measurement is believed to be better than this."""


@dataclass(frozen=True)
class _Earlier:
    """What earlier runs showed of a figure: log ratios (n,) to the baseline, and variances (n,)."""

    settings: list[Setting]
    values: Array
    variances: Array

    @classmethod
    def of(cls, problem: Problem, figure: Figure) -> "_Earlier":
        """Each counts the less the more there are: what they all get wrong, they get wrong
        together."""
        known = [e for e in problem.earlier if figure.name in e.figures]
        each = max(1.0, len(known) / WORTH)
        ratios = [e.figures[figure.name] for e in known]
        variances = [(r.spread**2 + e.doubt**2) * each for r, e in zip(ratios, known, strict=True)]
        return cls(
            [e.setting for e in known],
            np.array([math.log(ratio.value) for ratio in ratios], dtype=float),
            np.array(variances, dtype=float),
        )


class Evidence:
    """The observations of one figure, and its model when asked for.

    The unit throughout is the natural log of the figure relative to the baseline's first value.
    """

    def __init__(self, problem: Problem, figure: Figure, axes: Sequence[Axis]) -> None:
        self.figure = figure
        self.axes = [axis for axis in axes if figure.name in axis.dimension.moves]
        self.origin: float | None = None
        self._baseline = problem.baseline
        self._known = KnownShapes([axis.dimension for axis in self.axes], figure, problem.baseline)
        groups = [group for group, axis in enumerate(self.axes) for _ in range(axis.width)]
        self._layout = Layout(tuple(groups), len(self.axes))
        lengths = [LENGTH if axis.dimension.ordered else NAMED_LENGTH for axis in self.axes]
        noise = (2 * math.log(NOISE[figure.kind]), NOISE_SPREAD)
        beliefs = np.array([ALONE[figure.kind], TOGETHER[figure.kind], noise, *lengths])
        self._prior = Prior(beliefs[:, 0], beliefs[:, 1])
        self._earlier = _Earlier.of(problem, figure)
        self._seen: dict[tuple[tuple[Value, ...], Estimate], Setting] = {}
        self._model: FigureModel | None = None

    def part(self, setting: Setting) -> tuple[Value, ...]:
        """The part of a setting that the figure depends on."""
        return tuple(setting[axis.dimension.knob] for axis in self.axes)

    def add(self, trial: Trial) -> None:
        """Take the trial's figure, if it has it. The same value and spread for the same part
        of the setting is a measurement carried over, and counts once."""
        estimate = trial.figures.get(self.figure.name)
        if estimate is None or trial.status not in (Status.COMPLETE, Status.ABORTED):
            return
        if self.origin is None:
            self.origin = math.log(estimate.value)
        self._seen.setdefault((self.part(trial.setting), estimate), dict(trial.setting))
        self._model = None

    def measured(self, setting: Setting) -> bool:
        part = self.part(setting)
        return any(seen == part for seen, _ in self._seen)

    @property
    def log_limit(self) -> float | None:
        """The limit in the models' unit, or on the difference to the baseline, if it is a ratio;
        None if there is none or nothing was measured."""
        if self.origin is None or not self.figure.limited:
            return None
        if self.figure.ratio is not None:
            return math.log(self.figure.ratio)
        return math.log(self.figure.ceiling or 1.0) - self.origin

    @property
    def relative(self) -> bool:
        """Whether the limit is on the difference to the baseline."""
        return self.figure.ratio is not None

    def moved(self, settings: Sequence[Setting]) -> NDArray[np.bool_]:
        """Whether a knob is changed that can move the figure (n,)."""
        baseline = self.part(self._baseline)
        return np.array([self.part(setting) != baseline for setting in settings], dtype=bool)

    def over_baseline(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Mean and variance (n,) of the log figure over the baseline's true one."""
        model = self.model()
        if model is None:
            return np.zeros(len(settings)), np.ones(len(settings))
        place, different = self._different(settings)
        inputs, expected = self.encode(different)
        baseline, known = self.encode([self._baseline])
        mean, variance = model.beside(inputs, baseline)
        return (mean + expected - known)[place], variance[place]

    def noise(self) -> float:
        """The variance that another trial's figure is expected to have."""
        model = self.model()
        if model is None:
            return NOISE[self.figure.kind] ** 2
        return float(model.kernel_.scales[2] + np.median(model.alpha[: len(self._seen)]))

    def model(self) -> FigureModel | None:
        """The model of all that was told; None if nothing was."""
        if self._model is None and self._seen:
            known = self._earlier
            inputs, expected = self.encode([*self._seen.values(), *known.settings])
            estimates = [estimate for _, estimate in self._seen]
            values = np.array([math.log(e.value) - (self.origin or 0.0) for e in estimates])
            baseline = self.part(self._baseline)
            is_baseline = np.array([part == baseline for part, _ in self._seen])
            spreads = np.array([max(e.spread, LEAST_SPREAD) for e in estimates])
            self._presume(values, spreads, is_baseline)
            values = np.concatenate([values, known.values])
            variances = np.concatenate([spreads**2, known.variances])
            kernel = FigureKernel(np.exp(self._prior.centre), self._layout)
            model = FigureModel(kernel, variances, self._prior)
            self._model = model.learn(inputs, values - expected)
        return self._model

    def _presume(self, values: Array, spreads: Array, is_baseline: NDArray[np.bool_]) -> None:
        """Take the baseline to hold the ceiling, unless it is far over it: the user lives with
        it. What was measured of it gets the mean and the variance of a normal cut off there."""
        ceiling, count = self.log_limit, int(is_baseline.sum())
        if ceiling is None or self.relative or count == 0:
            return
        between = NOISE[self.figure.kind] ** 2
        spread = math.sqrt(float(np.mean(spreads[is_baseline] ** 2) + between) / count)
        margin = (ceiling - float(np.mean(values[is_baseline]))) / spread
        if margin < FAR_OVER:
            return
        slope = math.exp(-0.5 * margin**2 - float(log_ndtr(margin))) / math.sqrt(math.tau)
        values[is_baseline] -= spread * slope
        left = count * spread**2 * (1.0 - margin * slope - slope**2)
        spreads[is_baseline] = math.sqrt(max(left - between, LEAST_SPREAD**2))

    def encode(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Inputs (n, columns) of the model and what is expected beforehand (n,)."""
        places = [
            [x for axis in self.axes for x in axis.columns(setting[axis.dimension.knob])]
            for setting in settings
        ]
        expected, terms = self._known.of(settings)
        level = np.full((len(settings), 1), CONSTANT)
        return np.hstack([np.array(places, dtype=float), level, terms]), expected

    def posterior(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Mean (n,) and variance (n,) of the true log figure at the settings.

        Settings that differ only in knobs that do not move the figure are worked out once.
        """
        model = self.model()
        if model is None:
            return np.zeros(len(settings)), np.ones(len(settings))
        place, different = self._different(settings)
        inputs, expected = self.encode(different)
        mean, variance = model.posterior(inputs)
        return (mean + expected)[place], variance[place]

    def _different(self, settings: Sequence[Setting]) -> tuple[list[int], list[Setting]]:
        """Those that the figure tells apart, and the place among them of each setting's like."""
        different: dict[tuple[Value, ...], int] = {}
        place = [different.setdefault(self.part(s), len(different)) for s in settings]
        first = dict(zip(reversed(place), reversed(settings), strict=True))
        return place, [first[i] for i in range(len(different))]

    def covariance(self, left: Sequence[Setting], right: Sequence[Setting]) -> Array:
        """The posterior covariance (n, m) of the true log figures of two lists of settings."""
        model = self.model()
        if model is None:
            return np.zeros((len(left), len(right)))
        return model.covariance(self.encode(left)[0], self.encode(right)[0])
