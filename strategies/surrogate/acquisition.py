"""How much another trial of a setting is expected to bring."""

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from autotune.problem.setting import Setting
from autotune.strategies.surrogate.belief import Beliefs
from autotune.strategies.surrogate.gaussian_process import Array

PROVEN = 0.9
"""The least P(hold) of what is recommended, other than the baseline."""
SURE = 0.97
"""The least probability of being better than the baseline for leaving it."""
_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)
CAUTION = 4.0
"""The power of P(hold) in the worth of a setting that might be recommended: .95 counts for .81,
.8 for .41, as near a ceiling the best of many is often a lucky one."""


def log_expected_improvement(mean: Array, spread: Array, incumbent: float) -> Array:
    """log E[max(f − incumbent, 0)] of normal f, each (n,), accurate far in the tail."""
    z = (mean - incumbent) / spread
    density = -0.5 * z**2 - _LOG_SQRT_TAU
    # φ(z) + zΦ(z); below −6 the two cancel, and φ(z)/z² is good to 10 %.
    near = np.log(np.maximum(np.exp(density) + z * ndtr(z), 1e-300))
    far = density - 2 * np.log(np.maximum(-z, 1.0))
    return np.asarray(np.log(spread) + np.where(z > -6.0, near, far), dtype=float)


def worth(mean: Array, log_hold: Array, broken: bool = False) -> Array:
    """What steers the search: what settings are worth as the recommendation, if they hold.

    If the baseline is `broken` (over its ceilings), its speed is no mark to beat.
    """
    return np.asarray(np.exp(CAUTION * log_hold) * _gained(mean, broken), dtype=float)


def merit(mean: Array, spread: Array, log_hold: Array, broken: bool) -> Array:
    """The rule for recommending: P(hold) × what is gained, or 0 for what is not proven to hold and
    to be better. `mean` and `spread` are of the log gain over the baseline, and shaped to be
    broadcast against `log_hold`."""
    hold = np.exp(log_hold)
    better = ndtr(mean / np.maximum(spread, 1e-9))
    proven = (hold >= PROVEN) & ((better >= SURE) | broken)
    return np.asarray(np.where(proven, hold * _gained(mean, broken), 0.0), dtype=float)


def _gained(mean: Array, broken: bool) -> Array:
    return np.asarray(np.exp(mean) if broken else np.expm1(mean), dtype=float)


def outlook(
    beliefs: Beliefs, proposals: list[Setting], choices: list[Setting], draws: Array
) -> tuple[Array, Array]:
    """Mean log gain and log P(hold) of `choices` (m) after a trial of each proposal (n), each
    (n, k, m). `draws` (figures, k) are standard normals: what a trial may show, the same for all.
    """
    count = (len(proposals), draws.shape[1], len(choices))
    mean, log_hold = np.zeros(count), np.zeros(count)
    shares = {id(evidence): share for evidence, share in beliefs.shares()}
    for evidence, drawn in zip(beliefs.evidence, draws, strict=True):
        if evidence.origin is None:
            continue
        shift = beliefs.shift(evidence, proposals, choices)
        share = shares.get(id(evidence), 0.0)
        if share > 0:
            before, _ = evidence.posterior(choices)
            mean += share * (before + drawn[None, :, None] * shift[:, None, :])
        limit = evidence.log_limit
        if limit is not None:
            if evidence.figure.ratio is not None:
                shift = shift - beliefs.shift(evidence, proposals, [beliefs.baseline])
            before, variance = evidence.held_to(choices)
            after = before + drawn[None, :, None] * shift[:, None, :]
            left = np.sqrt(np.maximum(variance - shift**2, 1e-12))
            moved = evidence.moved(choices) | beliefs.at_home(choices)
            log_hold += np.where(moved, log_ndtr((limit - after) / left[:, None, :]), 0.0)
    return mean, log_hold


def knowledge_gradient(
    beliefs: Beliefs, proposals: list[Setting], choices: list[Setting], draws: Array, broken: bool
) -> Array:
    """How much better the best of `choices` is expected to look after a trial of each proposal
    (n,), in units of the gain."""
    best = worth(*outlook(beliefs, proposals, choices, draws), broken).max(axis=2)
    now = beliefs.of(choices)
    least = max(float(worth(now.mean, now.log_hold, broken).max()), 0.0)
    return np.asarray(np.maximum(best, 0.0).mean(axis=1) - least)
