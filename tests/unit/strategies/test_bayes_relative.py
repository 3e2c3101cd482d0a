"""Ceilings of a default run: relative to the baseline, whose own latencies scatter."""

import dataclasses
import math

import numpy as np
import pytest

from autotune.problem.ceilings import resolve
from autotune.problem.figure import Estimate, Figure
from autotune.problem.strategy import Dimension, Problem
from autotune.problem.trial import Status, Trial
from autotune.strategies._harm import harm
from autotune.strategies.bayes import Bayes
from autotune.strategies.surrogate.belief import Beliefs

READ, WRITE, P99 = "read.throughput", "write.throughput", "write.p99"
FIGURES = (
    Figure(READ, "read", "throughput", 1.0),
    Figure(WRITE, "write", "throughput", 1.0),
    Figure(P99, "write", "latency"),
)
BASELINE = {"read_ahead_kb": 512, "stripe_cache_size": 256}
AHEAD = {**BASELINE, "read_ahead_kb": 256}
CACHE = {**BASELINE, "stripe_cache_size": 1024}
MS = 1e6
SHOWN_AT_HOME = ((1.0, 70.0), (1.03, 89.7))
"""Of reads, and the p99 of writes in ms: a fifth apart, as it was seen on a real array."""


def shown(read: float, write: float, p99_ms: float) -> dict[str, Estimate]:
    return {
        READ: Estimate(read * 173e6, 0.03),
        WRITE: Estimate(write * 60e6, 0.03),
        P99: Estimate(p99_ms * MS, 0.08),
    }


def of_baseline() -> list[Trial]:
    return [Trial(BASELINE, Status.COMPLETE, shown(read, 1.0, p99)) for read, p99 in SHOWN_AT_HOME]


def problem(careful: bool = True) -> Problem:
    before = math.exp(np.mean([math.log(p99 * MS) for _, p99 in SHOWN_AT_HOME]))
    figures = resolve(FIGURES, [], {P99: Estimate(before, 0.05)})
    return Problem(
        (
            Dimension("read_ahead_kb", (128, 256, 512, 1024), True, frozenset({READ})),
            Dimension("stripe_cache_size", (256, 1024, 4096), True, frozenset({WRITE, P99})),
        ),
        tuple(figures),
        BASELINE,
        lambda _setting: True,
        10,
        3,
        careful,
        seconds={"read": 5.0, "write": 20.0},
    )


def test_what_moves_no_latency_is_recommended_however_much_that_scatters() -> None:
    strategy = Bayes(problem())
    for trial in of_baseline():
        strategy.tell(trial)
    # The p99 of writes over 1.1 times the baseline's, by noise alone.
    strategy.tell(Trial(AHEAD, Status.COMPLETE, shown(1.25, 1.0, 91.0)))
    strategy.tell(Trial(AHEAD, Status.COMPLETE, shown(1.2, 1.0, 88.0)))
    found = strategy.recommend()
    assert found.setting["stripe_cache_size"] == 256
    assert found.setting["read_ahead_kb"] in (128, 256)
    assert found.p_hold == pytest.approx(1.0)


def test_an_absolute_ceiling_is_not_held_against_what_cannot_move_it() -> None:
    limited = dataclasses.replace(FIGURES[2], ceiling=80 * MS)
    beliefs = Beliefs(dataclasses.replace(problem(), figures=(*FIGURES[:2], limited)))
    for trial in of_baseline():
        beliefs.add(trial)
    assert beliefs.of([AHEAD]).hold[0] == 1.0
    assert beliefs.of([BASELINE]).hold[0] < 0.9
    assert beliefs.of([CACHE]).hold[0] < 0.9


@pytest.mark.parametrize(("p99_ms", "low", "high"), [(60.0, 0.8, 1.0), (120.0, 0.0, 0.2)])
def test_what_moves_a_latency_holds_by_what_it_showed_beside_the_baseline(
    p99_ms: float, low: float, high: float
) -> None:
    beliefs = Beliefs(problem())
    trials = [Trial(CACHE, Status.COMPLETE, shown(1, 1.4, p99_ms * by)) for by in (0.98, 1, 1.02)]
    for trial in (*of_baseline(), *trials):
        beliefs.add(trial)
    assert low <= beliefs.of([CACHE]).hold[0] <= high


def test_a_baseline_that_breaks_its_ceiling_leaves_what_makes_it_no_worse() -> None:
    limited = dataclasses.replace(FIGURES[2], ceiling=20 * MS)
    strategy = Bayes(dataclasses.replace(problem(), figures=(*FIGURES[:2], limited)))
    for trial in of_baseline():
        strategy.tell(trial)
    for read in (1.25, 1.2, 1.22):
        strategy.tell(Trial(AHEAD, Status.COMPLETE, shown(read, 1.0, 80.0)))
    assert strategy.recommend().setting["read_ahead_kb"] in (128, 256)


def test_harm_is_seconds_over_a_ceiling_by_how_much() -> None:
    sure = np.full(3, 1e-6)
    under, little, far = harm(np.log([0.9, 1.02, 2.999]), sure, 0.0, 30.0)
    assert under == 0.0
    # All of the phase, by a little; and the few seconds until it is ended.
    assert little == pytest.approx(30 * 0.52, rel=0.05)
    assert far == pytest.approx(3 * 2.5, rel=0.05)
    certain, doubtful = harm(np.zeros(2), np.array([1e-6, 1.0]), 0.2, 30.0)
    assert certain < doubtful
