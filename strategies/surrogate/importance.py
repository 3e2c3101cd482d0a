"""What mattered: how much of an improvement each changed knob brought, from the models.

The improvement of a setting over the baseline is shared among the knobs in which they differ by
their Shapley values: what a knob adds, averaged over all orders of changing them one by one. On
the log scale these add up to the whole, and as they are linear in the log gains of the settings
in between, whose joint distribution the models give, their spreads are exact.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.strategy import KnobShare, Problem, Weighed
from autotune.problem.trial import Trial
from autotune.strategies.surrogate.belief import Beliefs

MOST = 10
"""Knobs shared among at once: 2¹⁰ settings. With more, which takes `--knobs all`, those after the
tenth count as one with it."""
NO_LOSS = 0.01
"""An expected loss of the gain that nobody notices."""
SURE = 1.28
"""How many spreads above nothing show that a change brings something (nine in ten)."""
LIKELY = 0.67
"""Likewise, three in four: what stays where no trial can tell any more."""
HOLD_LOSS = 0.1
"""A loss of P(hold) that is worth a look. What was not measured is always less sure to hold, so
that is no reason to keep a change: the proof sees whether it holds."""
HOLDS = 0.5
"""But what probably breaks a ceiling without a change needs it."""


def weigh(
    problem: Problem, trials: Sequence[Trial], setting: Setting, doubtful: bool = False
) -> Weighed:
    """The changed knobs of `setting`; none for the baseline. A knob is needed if going back is
    expected to lose something, beyond the doubt about it."""
    sure = LIKELY if doubtful else SURE
    beliefs = Beliefs(problem)
    for trial in trials:
        beliefs.add(trial)
    baseline = problem.baseline
    changed = [d.knob for d in problem.dimensions if setting[d.knob] != baseline[d.knob]]
    groups = [[knob] for knob in changed[: MOST - 1]]
    if changed[MOST - 1 :]:
        groups.append(changed[MOST - 1 :])
    mean, covariance = _shares(beliefs, baseline, setting, groups)
    order = sorted(range(len(groups)), key=lambda i: -mean[i])
    least_first = [k for i in reversed(order) for k in groups[i]]
    unneeded = _unneeded(problem, beliefs, setting, least_first, sure)
    smaller = {**setting, **{knob: baseline[knob] for knob in unneeded}}
    while left := [knob for knob in least_first if knob not in unneeded]:
        # What a change brings beside others that have gone back it may not bring without them.
        more = _unneeded(problem, beliefs, smaller, left, sure)
        if not more or len(more) == len(left):
            break
        unneeded |= more
        smaller |= {knob: baseline[knob] for knob in more}
    expected, hold = beliefs.joint([smaller, setting])[0], _hold(beliefs, [smaller, setting])
    shares = tuple(
        KnobShare(
            knob,
            baseline[knob],
            setting[knob],
            Estimate(math.exp(mean[i]), math.sqrt(max(covariance[i, i], 0.0))),
            knob not in unneeded,
        )
        for i in order
        for knob in groups[i]
    )
    less_sure = float(hold[1] - hold[0])
    loss = max(float(expected[1] - expected[0]), less_sure if less_sure > HOLD_LOSS else 0.0)
    return Weighed(shares, loss)


def _shares(
    beliefs: Beliefs, baseline: Setting, setting: Setting, groups: list[list[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (g,) and covariance (g, g) of the Shapley values of the log gain."""
    count = len(groups)
    subsets = list(itertools.product([False, True], repeat=count))
    between: list[Setting] = []
    for subset in subsets:
        taken = [k for group, on in zip(groups, subset, strict=True) if on for k in group]
        between.append({**baseline, **{knob: setting[knob] for knob in taken}})
    weights = np.zeros((count, len(subsets)))
    for place, subset in enumerate(subsets):
        size = sum(subset)
        for i in range(count):
            before = size - subset[i]
            ways = math.factorial(before) * math.factorial(count - before - 1)
            weight = ways / math.factorial(count)
            weights[i, place] = weight if subset[i] else -weight
    mean, covariance = beliefs.joint(between)
    return weights @ mean, weights @ covariance @ weights.T


def _unneeded(
    problem: Problem, beliefs: Beliefs, setting: Setting, least_first: list[str], sure: float
) -> set[str]:
    """Knobs that can go back, tried from the one that brought least: what they brought is too
    little, or not told from noise. What they lose is held against the whole setting, so that small
    losses do not add up."""
    found: set[str] = set()
    kept = dict(setting)
    for knob in least_first:
        reverted = {**kept, knob: problem.baseline[knob]}
        if not problem.allowed(reverted):
            continue
        hold = _hold(beliefs, [reverted, setting])
        mean, covariance = beliefs.joint([reverted, setting])
        loss = mean[1] - mean[0]
        doubt = math.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], 0.0))
        unseen = loss <= NO_LOSS or loss < sure * doubt
        if unseen and (hold[0] >= HOLDS or hold[0] >= hold[1] - HOLD_LOSS):
            found.add(knob)
            kept = reverted
    return found


def _hold(beliefs: Beliefs, settings: list[Setting]) -> np.ndarray:
    """P(hold) of the settings, the last one being the whole. If that holds what the baseline
    breaks, no less will do."""
    strict = beliefs.of(settings, strict=True).hold
    held = beliefs.broken() and strict[-1] >= HOLDS
    return strict if held else beliefs.of(settings).hold
