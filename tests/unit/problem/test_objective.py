"""The score and the ceilings."""

import math

import pytest

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import broken_ceilings, gain, p_hold

READ = Figure("read.throughput", "read", "throughput", 1.0)
WRITE = Figure("write.throughput", "write", "throughput", 3.0)
P99 = Figure("resync.p99", "resync", "latency", 0.0, 20e6)
BASELINE = {"read.throughput": Estimate(100.0, 0.05), "write.throughput": Estimate(50.0, 0.0)}


def test_the_gain_is_the_weighted_geometric_mean_of_the_ratios() -> None:
    measured = {"read.throughput": Estimate(200.0, 0.0), "write.throughput": Estimate(100.0, 0.0)}
    found = gain((READ, WRITE, P99), measured, BASELINE)
    assert found is not None
    assert found.value == pytest.approx(2.0)
    half = gain((READ, WRITE), {**measured, "write.throughput": Estimate(50.0, 0.0)}, BASELINE)
    assert half is not None
    assert half.value == pytest.approx(2.0**0.25)


def test_the_spread_of_the_gain_counts_both_sides_by_their_weights() -> None:
    measured = {"read.throughput": Estimate(1.0, 0.12), "write.throughput": Estimate(1.0, 0.04)}
    found = gain((READ, WRITE), measured, BASELINE)
    assert found is not None
    assert found.spread == pytest.approx(math.hypot(0.13 / 4, 0.04 * 3 / 4))


@pytest.mark.parametrize("side", ["measured", "baseline"])
def test_nothing_is_claimed_if_a_weighted_figure_is_missing(side: str) -> None:
    partial = {"read.throughput": Estimate(1.0, 0.1)}
    measured, before = (partial, BASELINE) if side == "measured" else (BASELINE, partial)
    assert gain((READ, WRITE), measured, before) is None


def test_nothing_is_claimed_if_no_figure_has_a_weight() -> None:
    assert gain((P99,), {"resync.p99": Estimate(1.0, 0.1)}, {}) is None


def test_a_ceiling_is_broken_only_above_it() -> None:
    assert broken_ceilings((P99,), {"resync.p99": Estimate(20e6, 0.1)}, {}) == []
    assert broken_ceilings((READ, P99), {"resync.p99": Estimate(20.1e6, 0.1)}, {}) == [P99]
    assert broken_ceilings((P99,), {}, {}) == []


def test_the_probability_of_holding_follows_from_margin_and_spread() -> None:
    assert p_hold((P99,), {"resync.p99": Estimate(20e6, 0.1)}, {}) == pytest.approx(0.5)
    one_spread_below = Estimate(20e6 * math.exp(-0.1), 0.1)
    assert p_hold((READ, P99), {"resync.p99": one_spread_below}, {}) == pytest.approx(
        0.8413, abs=1e-4
    )


def test_without_spread_a_ceiling_holds_or_not() -> None:
    assert p_hold((P99,), {"resync.p99": Estimate(19e6, 0.0)}, {}) == 1.0
    assert p_hold((P99,), {"resync.p99": Estimate(21e6, 0.0)}, {}) == 0.0


def test_a_ceiling_that_was_not_measured_is_not_known_to_hold() -> None:
    other = Figure("mix.p99", "mix", "latency", 0.0, 5e6)
    holding = {"resync.p99": Estimate(1e6, 0.01)}
    assert p_hold((P99, other), holding, {}) == pytest.approx(0.5)
    assert p_hold((READ,), {}, {}) == 1.0


RELATIVE = Figure("write.p99", "write", "latency", 0.0, ratio=1.2)


def test_a_limit_relative_to_the_baseline_is_judged_beside_it() -> None:
    before = {"write.p99": Estimate(10e6, 0.03)}
    assert broken_ceilings((RELATIVE,), {"write.p99": Estimate(11.9e6, 0.1)}, before) == []
    assert broken_ceilings((RELATIVE,), {"write.p99": Estimate(12.1e6, 0.1)}, before) == [RELATIVE]
    both = math.hypot(0.04, 0.03)
    one_spread_below = {"write.p99": Estimate(12e6 * math.exp(-both), 0.04)}
    assert p_hold((RELATIVE,), one_spread_below, before) == pytest.approx(0.8413, abs=1e-4)


def test_what_was_carried_over_from_the_baseline_holds_beside_it_however_noisy() -> None:
    before = {"write.p99": Estimate(10e6, 0.5)}
    assert p_hold((RELATIVE,), before, before) == 1.0
