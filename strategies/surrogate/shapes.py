"""What is known beforehand of how knobs move a figure: curves known up to a guess.

A shape has a curve for each of several guesses at what is not known of the array (the speed of
its disks, the cache that suffices), any of which may be right, times a coefficient that is not
well known either. Its mean and covariance over both enter a figure's model as linear terms, so
that trials tell which guess is right. It is a head start of a few trials, no more: the Gaussian
process bends what is left. Figures are told apart by their kind only, never by the phase's name,
which is the workload's choice.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.problem.figure import Figure
from autotune.problem.setting import Setting
from autotune.problem.strategy import Dimension

Array = NDArray[np.float64]
Columns = Mapping[str, Array]
"""Of n settings, the values (n,) of each ordered knob."""


@dataclass(frozen=True)
class KnownShape:
    """`curves` of n settings (guesses, n), in units of the log figure per unit of the
    coefficient, which is `mean` ± `spread` beforehand. Known for `knob` and its partners."""

    knob: str
    kind: str
    curves: Callable[[Columns], Array]
    mean: float
    spread: float


def stripe_cache(columns: Columns) -> Array:
    """Throughput grows with the stripe cache until it suffices: at 256 to 8192 stripes.

    Measured: 17/64/256/1024/4096 stripes = 15.5/17.5/26.5/35.4/33.9 MB/s on four disks;
    256/4096/8192/16384 = 50/123/142/140 on RAID5 under LUKS; 256 to 8192 elsewhere ×3.5, ×1.5.
    """
    enough = np.linspace(8.0, 13.0, 6)[:, None]
    doublings = np.log2(np.maximum(columns["stripe_cache_size"], 1.0))
    return np.asarray(1.0 / (1.0 + np.exp(-(doublings - enough + 1.0) / 1.2)), dtype=float)


def read_ahead(columns: Columns) -> Array:
    """Reads have their best read-ahead somewhere from 128 KiB to 8 MiB and lose to both sides.

    Measured: 64/128/1024/4096/16384 KiB = 40/49/51/39/32 MB/s; 128/384/1536/6144 =
    184/203/79/93.
    """
    best = np.linspace(7.0, 13.0, 5)[:, None]
    doublings = np.log2(np.maximum(columns["read_ahead_kb"], 1.0))
    return np.asarray(-np.hypot(doublings - best, 1.0), dtype=float)


ABLE_KIBPS = np.geomspace(30e3, 3e6, 6)
"""Guesses at what a member could sync by itself, from a hard disk to NVMe."""
LEFT = (0.4, 0.8)
"""Guesses at the part of it that the foreground leaves."""


def _sync(columns: Columns) -> tuple[Array, Array]:
    """The log rate of a sync and the part of the disks that it uses, each (guesses, n): what
    the foreground leaves it, but neither above its upper limit nor below its lower one."""
    upper = np.maximum(columns["sync_speed_max"], 1.0)
    lower = np.maximum(columns.get("sync_speed_min", np.full(upper.shape, 1000.0)), 1.0)
    able = np.repeat(ABLE_KIBPS, len(LEFT))[:, None]
    left = able * np.tile(LEFT, len(ABLE_KIBPS))[:, None]
    rate = np.maximum(1 / np.hypot(1 / upper, 1 / left), 1 / np.hypot(1 / lower, 1 / able))
    return np.asarray(np.log(rate), dtype=float), np.asarray(rate / able, dtype=float)


def sync_rate(columns: Columns) -> Array:
    """Measured: upper limits of 5000/20000/200000 gave 5.8/21.8/35 MB/s; lower ones of
    1000/65000/80000 gave 49/66/73."""
    return _sync(columns)[0]


def sync_disturbance(columns: Columns) -> Array:
    """Latency grows with the part of the disks that a sync uses.

    Measured: upper limits of 5000/20000/200000 gave a p99 of 32/41/52 ms; elsewhere 1000/200000
    gave 16.7/88, and a lower limit of 20000 made that 112.
    """
    return np.asarray(np.log1p(4.0 * _sync(columns)[1]), dtype=float)


def queue(columns: Columns) -> Array:
    """A request waits for those queued before it."""
    return np.asarray(np.log2(np.maximum(columns["nr_requests"], 1.0))[None, :], dtype=float)


_SHAPES = (
    KnownShape("stripe_cache_size", "throughput", stripe_cache, 0.5, 0.5),
    KnownShape("read_ahead_kb", "throughput", read_ahead, 0.15, 0.1),
    KnownShape("sync_speed_max", "throughput", sync_rate, 0.9, 0.3),
    KnownShape("sync_speed_max", "latency", sync_disturbance, 0.8, 0.5),
    KnownShape("nr_requests", "latency", queue, 0.1, 0.1),
)


class KnownShapes:
    """The shapes of the knobs that move a figure, each 0 at the baseline."""

    def __init__(self, dimensions: Sequence[Dimension], figure: Figure, baseline: Setting) -> None:
        self._ordered = [d.knob for d in dimensions if d.ordered]
        self._shapes = [s for s in _SHAPES if s.kind == figure.kind and s.knob in self._ordered]
        self._baseline = self._columns([baseline])

    def of(self, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """What is expected of the settings' log figure (n,), and its linear terms (n, terms),
        each multiplied by the spread of its coefficient."""
        columns = self._columns(settings)
        mean, terms = np.zeros(len(settings)), [np.zeros((0, len(settings)))]
        for shape in self._shapes:
            curves = shape.curves(columns) - shape.curves(self._baseline)
            middle = curves.mean(axis=0)
            mean += shape.mean * middle
            off = math.hypot(shape.mean, shape.spread) / math.sqrt(len(curves))
            terms += [shape.spread * middle[None, :], off * (curves - middle)]
        return mean, np.vstack(terms).T

    def _columns(self, settings: Sequence[Setting]) -> Columns:
        return {
            knob: np.array([float(setting[knob]) for setting in settings]) for knob in self._ordered
        }
