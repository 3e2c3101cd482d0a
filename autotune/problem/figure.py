"""One measured quantity, and what was measured of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One measured quantity, as "phase.quantity": "write.throughput", "resync.p99".

    Throughputs are in bytes/s (higher is better), latencies in ns (lower is better). `weight` is
    the exponent in the objective (0: not in it). A latency has a limit or none: `ceiling` is an
    absolute one in ns, `ratio` one as a multiple of the baseline's own figure, under the same
    conditions; that one is judged as a difference to the baseline. At most one of them is set.
    """

    name: str
    phase: str
    kind: Literal["throughput", "latency"]
    weight: float = 0.0
    ceiling: float | None = None
    ratio: float | None = None

    @property
    def quantity(self) -> str:
        """What of the phase: "throughput", "p99"."""
        return self.name.removeprefix(f"{self.phase}.")

    @property
    def limited(self) -> bool:
        return self.ceiling is not None or self.ratio is not None

    def limit(self, baseline: "Mapping[str, Estimate]") -> float | None:
        """The limit in ns beside these figures of the baseline; None if there is none, or the
        baseline's figure is not known."""
        if self.ratio is None or self.name not in baseline:
            return self.ceiling
        return self.ratio * baseline[self.name].value

    def without_limit(self) -> "Figure":
        return replace(self, ceiling=None, ratio=None)


SPREADS_95 = 2.36
"""This many spreads on each side contain 95 %: Student's t for a spread that is estimated from
eight batches of a measurement, as most are."""


@dataclass(frozen=True)
class Estimate:
    """A positive value and its spread: the standard deviation of its natural logarithm."""

    value: float
    spread: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the value."""
        factor = math.exp(SPREADS_95 * self.spread)
        return self.value / factor, self.value * factor
