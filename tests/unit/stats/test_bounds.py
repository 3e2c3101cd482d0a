"""What ends a trial early, and what is taken for a drift."""

import math
import random

import pytest

from autotune.problem.figure import Estimate, Figure
from autotune.stats.bounds import best_possible, surely_over
from autotune.stats.drift import Anchor, drift, is_moving, largest_drifts, without_drift

WRITE = Figure("write.throughput", "write", "throughput", 1.0)
READ = Figure("read.throughput", "read", "throughput", 1.0)


def test_many_slow_samples_are_surely_over_long_before_a_p99_is_known() -> None:
    assert surely_over([{1: 46, 100: 4}, {1: 44, 100: 6}] * 2, 50, 99.0)
    assert not surely_over([{1: 25}] * 3 + [{1: 24, 100: 1}], 50, 99.0)
    assert not surely_over([{}] * 8, 50, 99.0)


def test_one_burst_is_not_surely_over() -> None:
    assert not surely_over([{1: 100}] * 7 + [{1: 60, 100: 40}], 50, 99.0)


def test_three_intervals_say_nothing_surely() -> None:
    assert not surely_over([{100: 100}] * 3, 50, 99.0)


@pytest.mark.parametrize("count", [200, 900, 5000])
def test_a_ceiling_that_just_holds_is_hardly_ever_called_over(count: int) -> None:
    rng, called = random.Random(count), 0
    for _ in range(1000):
        slow = [sum(rng.random() < 0.01 for _ in range(count // 8)) for _ in range(8)]
        called += surely_over([{1: count // 8 - n, 100: n} for n in slow], 50, 99.0)
    assert called <= 6


def test_what_is_not_measured_yet_may_still_be_the_best_ever_seen() -> None:
    baseline = {n: Estimate(100, 0.01) for n in ("write.throughput", "read.throughput")}
    slow = {"write.throughput": Estimate(10, 0.01)}
    fine = {"write.throughput": Estimate(90, 0.01)}
    best = {"read.throughput": 200.0}
    assert best_possible([WRITE, READ], slow, baseline, best) < 0.6
    assert best_possible([WRITE, READ], fine, baseline, best) > 1.4


def anchors(*values: float) -> list[Anchor]:
    return [
        Anchor(float(i * 100), {"write.throughput": Estimate(v, 0.02)})
        for i, v in enumerate(values)
    ]


def test_noise_is_no_drift() -> None:
    assert drift(anchors(100, 104, 97, 103), "write.throughput", 250) == (0, 0)
    assert largest_drifts(anchors(100, 104, 97, 103)) == {}


def test_a_drift_is_taken_out_in_proportion_to_time() -> None:
    slower = anchors(100, 100, 50)
    (now,) = without_drift({"write.throughput": Estimate(50, 0.02)}, 200, slower).values()
    assert now.value == pytest.approx(100)
    (half,) = without_drift({"write.throughput": Estimate(70.71, 0.02)}, 150, slower).values()
    assert half.value == pytest.approx(100, rel=0.01)
    assert largest_drifts(slower) == {"write.throughput": pytest.approx(0.5)}


def test_a_noisy_second_measurement_hides_no_drift() -> None:
    """As of reads in the lab, where nobody was told that they had become 1.6 times as fast."""
    spreads = (141, 0.11), (140, 0.45), (222, 0.02), (229, 0.02)
    seen = [
        Anchor(i * 100.0, {"read.throughput": Estimate(value, spread)})
        for i, (value, spread) in enumerate(spreads)
    ]
    assert largest_drifts(seen[:2]) == {}
    assert largest_drifts(seen[:3]) == {"read.throughput": pytest.approx(1.57, rel=0.01)}
    assert is_moving(seen[:3])
    assert not is_moving(seen)


def test_a_noisy_later_measurement_is_no_drift() -> None:
    seen = anchors(100, 100)
    seen.append(Anchor(200.0, {"write.throughput": Estimate(150, 0.3)}))
    assert largest_drifts(seen) == {}
    assert not is_moving(seen)


def test_before_the_first_anchor_nothing_has_drifted() -> None:
    assert drift(anchors(100, 100, 50), "write.throughput", -5) == (0, 0)
    assert drift(anchors(100, 100, 50), "write.throughput", 0) == (0, 0)


def test_when_a_drift_began_between_two_anchors_is_not_known() -> None:
    slower, step = anchors(100, 100, 50, 100), math.log(2)
    assert drift(slower, "write.throughput", 200)[1] == 0
    between = [drift(slower, "write.throughput", time)[1] for time in (101, 150, 199, 250)]
    assert between == pytest.approx([step * 0.0995, step / 2, step * 0.0995, step / 2], rel=0.01)
    (shown,) = without_drift({"write.throughput": Estimate(50, 0.02)}, 250, slower).values()
    assert shown.spread == pytest.approx(step / 2, rel=0.01)
    assert drift(anchors(100, 100, 50), "write.throughput", 300) == pytest.approx((-step, step / 2))


def test_the_array_moves_until_two_anchors_agree() -> None:
    assert not is_moving(anchors(100, 104, 97))
    assert is_moving(anchors(100, 100, 50))
    assert not is_moving(anchors(100, 100, 50, 51))
    assert is_moving(anchors(100, 100, 50, 100))
