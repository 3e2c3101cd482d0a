"""What is known beforehand of how a knob moves a figure: shapes that saturate.

A shape is a curve of the knob's value with a coefficient of its own, whose prior has a mean and
a spread. It is a head start of a few trials, no more: the coefficient is learnt, the Gaussian
process bends what is left, and a knob without a shape is simply learnt from its trials. Figures
are told apart by their kind only, never by the phase's name, which is the workload's choice.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from autotune.search import Dimension, Figure, Value


@dataclass(frozen=True)
class Shape:
    """`curve` of a value, in units of the log figure per unit of the coefficient, which is
    `mean` ± `spread` beforehand."""

    curve: Callable[[float], float]
    mean: float
    spread: float


def stripe_cache(stripes: float) -> float:
    """Writes gain with the stripe cache up to some thousand stripes and hardly lose below 100.

    Measured: 17/64/256/1024/4096 stripes = 15.5/17.5/26.5/35.4/33.9 MB/s on four disks;
    256/4096/8192/16384 = 50/123/142/140 on RAID5 under LUKS.
    """
    return 1.0 / (1.0 + math.exp(-(math.log2(max(stripes, 1.0)) - 9.0) / 1.2))


def sync_rate(speed: float) -> float:
    """A sync runs at its limit (KiB/s a member) until the disks are the limit.

    Measured: limits of 5000/20000/200000 gave 5.8/21.8/35 MB/s.
    """
    return math.log(speed / (speed + 50_000.0)) if speed > 0 else math.log(1 / 50_001.0)


def sync_disturbance(speed: float) -> float:
    """Latency under a sync grows with its speed, and less and less.

    Measured: limits of 5000/20000/200000 gave a p99 of 32/41/52 ms; elsewhere 1000/200000 gave
    16.7/88.
    """
    return math.log1p(math.sqrt(max(speed, 0.0) / 20_000.0))


_SHAPES = {
    ("stripe_cache_size", "throughput"): Shape(stripe_cache, 0.3, 0.3),
    ("sync_speed_max", "throughput"): Shape(sync_rate, 0.6, 0.4),
    ("sync_speed_max", "latency"): Shape(sync_disturbance, 0.4, 0.4),
}


def shape(dimension: Dimension, figure: Figure) -> Shape | None:
    """The shape for a knob among those that move the figure; None if nothing is known."""
    return _SHAPES.get((dimension.knob, figure.kind)) if dimension.ordered else None


def centred(known: Shape, value: Value, baseline: Value) -> float:
    """The shape's curve at `value`, 0 at the baseline."""
    return known.curve(float(value)) - known.curve(float(baseline))
