"""How much another trial of a setting is expected to bring, and how much its proof."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from autotune.problem.setting import Setting
from autotune.strategies.surrogate.belief import Beliefs
from autotune.strategies.surrogate.gaussian_process import Array

_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)
CAUTION = 4.0
"""The power of P(hold) in the worth of a setting that might be recommended: .95 counts for .81,
.8 for .41, as near a ceiling the best of many is often a lucky one."""
CLEAR = 2.3
"""How many of its own spreads a proof has to be above nothing."""
FALSE = 10.0
"""What it costs to keep what breaks its ceiling after all, in units of what it gains."""
SOUND = 0.96
"""The least part of what is kept that holds its ceilings; the models are a little too sure."""
_PARTS = (np.arange(12) + 0.5) / 12


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


@dataclass(frozen=True)
class Prospect:
    """What proofs of n settings are expected to bring, and P(kept), each (n,)."""

    value: Array
    passes: Array


def prospect(
    beliefs: Beliefs, settings: list[Setting], broken: bool, proven: float | None = None
) -> Prospect:
    """What a proof of each setting is expected to bring: P(kept) × what it gains, less what it
    costs to keep what breaks a ceiling. `broken`: as for `worth`, and only what holds all
    ceilings will do. `proven`: the gain of what was kept already; only more counts."""
    belief = beliefs.of(settings, broken)
    noise = beliefs.proof_variance(settings)
    shown = np.sqrt(np.maximum(belief.spread**2 + noise, 1e-12))
    better = ndtr((belief.mean - CLEAR * np.sqrt(noise)) / shown)
    passes, good = np.ones(len(settings)), np.ones(len(settings))
    for limited in beliefs.limits(settings, broken):
        spread = np.sqrt(limited.variance)
        margin = limited.limit - limited.mean
        holds = ndtr(margin / spread)
        # The true figures, where they hold, in parts of equal probability.
        true = spread[:, None] * ndtri(np.maximum(holds, 1e-12)[:, None] * _PARTS)
        seen = ndtr((margin[:, None] - true) / math.sqrt(limited.noise)).mean(axis=1)
        through = ndtr(margin / np.sqrt(limited.variance + limited.noise))
        good *= np.where(limited.counts, holds * seen, 1.0)
        passes *= np.where(limited.counts, through, 1.0)
    kept = np.ones(len(settings)) if broken else better
    gained = _gained(belief.mean, broken)
    if proven is not None:
        gained = np.maximum(np.exp(belief.mean) - proven, 0.0)
    value = kept * (good - FALSE * np.maximum(passes - good, 0.0)) * gained
    value = np.where(beliefs.is_baseline(settings) | (good < SOUND * passes), 0.0, value)
    return Prospect(np.asarray(value, dtype=float), np.asarray(kept * passes, dtype=float))


def _gained(mean: Array, broken: bool) -> Array:
    return np.asarray(np.exp(mean) if broken else np.expm1(mean), dtype=float)


def outlook(
    beliefs: Beliefs,
    proposals: list[Setting],
    choices: list[Setting],
    draws: Array,
    strict: bool = False,
) -> tuple[Array, Array]:
    """Mean log gain and log P(hold) of `choices` (m) after a trial of each proposal (n), each
    (n, k, m). `draws` (figures, k) are standard normals: what a trial may show, the same for all.
    """
    count = (len(proposals), draws.shape[1], len(choices))
    mean, log_hold = np.zeros(count), np.zeros(count)
    shares = {id(evidence): share for evidence, share in beliefs.shares()}
    limits = {id(limited.evidence): limited for limited in beliefs.limits(choices, strict)}
    with_baseline = [*choices, beliefs.baseline]
    for evidence, drawn in zip(beliefs.evidence, draws, strict=True):
        if evidence.origin is None:
            continue
        moved = beliefs.shift(evidence, proposals, with_baseline)
        apart = moved[:, :-1] - moved[:, -1:]
        share, limited = shares.get(id(evidence), 0.0), limits.get(id(evidence))
        if share > 0:
            before, _ = evidence.over_baseline(choices)
            mean += share * (before + drawn[None, :, None] * apart[:, None, :])
        if limited is not None:
            shift = apart if limited.relative else moved[:, :-1]
            after = limited.mean + drawn[None, :, None] * shift[:, None, :]
            left = np.sqrt(np.maximum(limited.variance - shift**2, 1e-12))
            holds = log_ndtr((limited.limit - after) / left[:, None, :])
            log_hold += np.where(limited.counts, holds, 0.0)
    return mean, log_hold


def knowledge_gradient(
    beliefs: Beliefs, proposals: list[Setting], choices: list[Setting], draws: Array, broken: bool
) -> Array:
    """How much better the best of `choices` is expected to look after a trial of each proposal
    (n,), in units of the gain."""
    best = worth(*outlook(beliefs, proposals, choices, draws, broken), broken).max(axis=2)
    now = beliefs.of(choices, broken)
    least = max(float(worth(now.mean, now.log_hold, broken).max()), 0.0)
    return np.asarray(np.maximum(best, 0.0).mean(axis=1) - least)
