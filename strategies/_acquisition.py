"""How much another trial of a setting is expected to bring."""

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from autotune.search import Setting
from autotune.strategies._belief import Beliefs
from autotune.strategies._models import Array

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


def worth(mean: Array, log_hold: Array) -> Array:
    """What a setting is worth as the recommendation: its improvement, if it holds."""
    return np.asarray(np.exp(CAUTION * log_hold) * np.expm1(mean), dtype=float)


def knowledge_gradient(
    beliefs: Beliefs, tried: list[Setting], choices: list[Setting], draws: Array
) -> Array:
    """How much better the best of `choices` (m) is expected to look after a trial of each of
    `tried` (n,), in units of the gain.

    `draws` (figures, k) are standard normals: what a trial may show, the same for all.
    """
    count = (len(tried), draws.shape[1], len(choices))
    mean, log_hold = np.zeros(count), np.zeros(count)
    shares = {id(evidence): share for evidence, share in beliefs.shares()}
    now_mean, now_hold = np.zeros(len(choices)), np.zeros(len(choices))
    for evidence, drawn in zip(beliefs.evidence, draws, strict=True):
        if evidence.origin is None:
            continue
        before, variance = evidence.posterior(choices)
        _, there = evidence.posterior(tried)
        shift = evidence.covariance(tried, choices) / np.sqrt(there + evidence.noise())[:, None]
        after = before + drawn[None, :, None] * shift[:, None, :]
        share = shares.get(id(evidence), 0.0)
        mean += share * after
        now_mean += share * before
        limit = evidence.log_ceiling
        if limit is not None:
            left = np.sqrt(np.maximum(variance - shift**2, 1e-12))
            log_hold += log_ndtr((limit - after) / left[:, None, :])
            now_hold += log_ndtr((limit - before) / np.sqrt(variance))
    best = np.maximum(worth(mean, log_hold).max(axis=2), 0.0)
    return np.asarray(best.mean(axis=1) - max(float(worth(now_mean, now_hold).max()), 0.0))
