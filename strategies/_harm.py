"""What a trial that passes a ceiling does to an array, before it is ended."""

import numpy as np
from scipy.special import ndtri

from autotune.strategies.surrogate.gaussian_process import Array

LEAST_S = 3.0
"""No trial is ended before: the ramp, and a second to look."""
SURE_S = 0.0067
"""Seconds until a p99 is certain to be over its ceiling, times the square of the share of requests
that are too slow: a usual probe, whose slow requests come in bursts (`stats.bounds`)."""
MOST = 3.0
"""Times the ceiling; beyond that it is all the same, and ended at once."""
AT_ALL = 0.5
"""A second over a ceiling counts as one half over it, however little it is: what passes it by a
little is not ended, and lasts longest."""
_NODES = ndtri((np.arange(12) + 0.5) / 12)


def harm(mean: Array, variance: Array, limit: float, seconds: float) -> Array:
    """Expected seconds over a ceiling, times the part by which it is passed and AT_ALL (n,), of a
    phase that takes so many seconds. `mean` and `variance` are of the log latency, `limit` in the
    same unit."""
    spread = np.sqrt(variance)[:, None]
    over = np.exp(np.minimum(mean[:, None] + spread * _NODES - limit, np.log(MOST)))
    slow = 0.01 ** (1.0 / np.maximum(over, 1.0001)) - 0.01
    ended = np.clip(SURE_S / slow**2, LEAST_S, max(seconds, LEAST_S))
    return np.asarray(
        (np.where(over > 1.0, over - 1.0 + AT_ALL, 0.0) * ended).mean(axis=1), dtype=float
    )
