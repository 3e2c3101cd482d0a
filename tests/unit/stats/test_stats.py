"""Histograms, rates and verdicts: what is claimed, and what is not."""

import math
import random

import pytest

from autotune.problem.figure import Estimate, Figure
from autotune.stats.histogram import difference, percentile, samples_needed, total
from autotune.stats.steady_state import is_steady, rate
from autotune.stats.verdict import Conclusion, judge

WRITE = Figure("write.throughput", "write", "throughput", weight=1.0)
READ = Figure("read.throughput", "read", "throughput", weight=1.0)
P99 = Figure("write.p99", "write", "latency")


def test_a_percentile_lies_where_the_samples_are() -> None:
    intervals = [{100: 245, 2000: 5}] * 4
    estimate = percentile(intervals, 99.0)
    assert estimate is not None
    assert estimate.value == 2000
    median = percentile(intervals, 50.0)
    assert median is not None
    assert median.value == 100


def test_a_percentile_of_too_few_samples_is_not_given() -> None:
    assert samples_needed(99.0) == 400
    assert percentile([{100: 100}] * 3 + [{100: 99}], 99.0) is None
    assert percentile([{100: 100}] * 4, 99.0) is not None
    assert percentile([{100: 1000}] * 3, 99.0) is None


@pytest.mark.parametrize("burst", [1, 5, 25])
def test_the_spread_of_a_percentile_covers_its_truth_even_if_slow_samples_come_in_bursts(
    burst: int,
) -> None:
    rng = random.Random(1)
    truth, held = math.exp(1.645), 0
    for _ in range(200):
        intervals: list[dict[int, int]] = []
        for _ in range(12):
            samples: dict[int, int] = {}
            for _ in range(100 // burst):
                ns = round(1e6 * math.exp(rng.gauss(0, 1)))
                samples[ns] = samples.get(ns, 0) + burst
            intervals.append(samples)
        estimate = percentile(intervals, 95.0)
        assert estimate is not None
        low, high = estimate.interval
        held += low <= truth * 1e6 <= high
    assert held >= (170 if burst == 25 else 180)


def test_histograms_add_and_subtract() -> None:
    assert total([{1: 2}, {1: 1, 5: 3}]) == {1: 3, 5: 3}
    assert difference({1: 3, 5: 3}, {1: 3, 5: 1}) == {5: 2}


def test_a_constant_rate_is_steady_and_a_wild_one_is_not() -> None:
    constant = rate([100.0] * 8, [1.0] * 8)
    wild = rate([10.0, 300.0, 20.0, 500.0, 1.0, 100.0, 90.0, 800.0], [1.0] * 8)
    assert constant is not None
    assert constant.value == 100
    assert is_steady(constant)
    assert not is_steady(wild)


def test_a_rate_needs_a_few_intervals_and_some_work() -> None:
    assert rate([1.0] * 3, [1.0] * 3) is None
    assert rate([0.0] * 9, [1.0] * 9) is None


def measured(write: float, p99: float = 1e6, spread: float = 0.02) -> dict[str, Estimate]:
    return {"write.throughput": Estimate(write, spread), "write.p99": Estimate(p99, 0.05)}


def test_a_large_difference_is_better_and_read_is_taken_as_equal() -> None:
    verdict = judge(
        [WRITE, READ, P99],
        [measured(200, 2e6), measured(204, 2e6)],
        [measured(100), measured(101)],
        [measured(99), measured(102)],
    )
    assert verdict.figures["write.throughput"].conclusion is Conclusion.BETTER
    assert verdict.figures["write.p99"].conclusion is Conclusion.WORSE
    assert verdict.overall.conclusion is Conclusion.BETTER
    assert verdict.overall.ratio == pytest.approx(math.sqrt(2), rel=0.02)
    assert verdict.overall.low < verdict.overall.ratio < verdict.overall.high


def test_a_drift_common_to_both_is_no_difference() -> None:
    verdict = judge([WRITE], [measured(100), measured(50)], [measured(101), measured(50)])
    assert verdict.overall.conclusion is Conclusion.SAME


def test_what_the_baseline_was_before_a_drift_is_no_noise() -> None:
    verdict = judge(
        [WRITE], [measured(90), measured(91)], [measured(60), measured(60.6)],
        [measured(100), measured(101)],
    )  # fmt: skip
    assert verdict.overall.low > 1.3


def test_repeats_that_agree_outweigh_what_varies_within_each() -> None:
    """Writes of an array whose disks were slowed, as measured: each phase was too short for its
    bursts, and all were within 5 % of what their setting showed at that time."""
    verdict = judge(
        [WRITE],
        [measured(53.1, spread=0.132), measured(52.0, spread=0.028)],
        [measured(36.4, spread=0.213), measured(37.7, spread=0.182)],
        [measured(41.4, spread=0.197), measured(39.5, spread=0.184), measured(39.6, spread=0.104)],
    )
    assert verdict.overall.conclusion is Conclusion.BETTER


def test_repeats_that_agree_by_luck_do_not_hide_what_varies_within_each() -> None:
    noisy = (
        [measured(110, spread=0.1), measured(110.1, spread=0.1)],
        [measured(100, spread=0.1), measured(100.1, spread=0.1)],
    )
    assert judge([WRITE], *noisy).overall.conclusion is Conclusion.SAME


@pytest.mark.parametrize("spread", [0.02, 0.08])
def test_equal_settings_are_called_the_same_nineteen_times_of_twenty(spread: float) -> None:
    rng, claims = random.Random(2), 0

    def one() -> dict[str, Estimate]:
        return measured(100 * math.exp(rng.gauss(0, 0.08)), spread=spread)

    for _ in range(400):
        verdict = judge([WRITE], [one(), one()], [one(), one()], [one(), one()])
        claims += verdict.overall.conclusion is not Conclusion.SAME
    assert claims <= 20
