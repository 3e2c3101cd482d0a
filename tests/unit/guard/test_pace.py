"""The pace of a guarded sync, learnt from foregrounds that follow it in different ways."""

import math
import random
import statistics
from collections import Counter

import pytest

from autotune.guard.pace import WANTED, Pace
from autotune.measure.foreground import Second

CEILING_NS = 100e6
RIGHT_KIB = 10_000.0
"""At this pace the p99 is what is wanted."""


def second(rng: random.Random, p99_ns: float, requests: int = 20) -> Second:
    """A second of requests whose true p99 is this."""
    taken = [round(p99_ns * math.exp(0.4 * rng.gauss(-2.326, 1.0))) for _ in range(requests)]
    slow = sum(ns > WANTED * CEILING_NS for ns in taken)
    return Second(requests, requests, slow, histogram=Counter(taken))


def followed(pace: Pace, steepness: float, seconds: int, seed: int = 0) -> list[float]:
    """The paces of so many seconds over an array whose p99 goes with a power of the pace."""
    rng, paces = random.Random(seed), []
    for _ in range(seconds):
        pace.learn(second(rng, WANTED * CEILING_NS * (pace.kib / RIGHT_KIB) ** steepness))
        paces.append(pace.kib)
    return paces


@pytest.mark.parametrize("steepness", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("start_kib", [2000.0, 50_000.0])
def test_it_finds_the_pace_however_the_p99_follows_it(steepness: float, start_kib: float) -> None:
    pace = Pace(1000, start_kib, CEILING_NS)
    paces = followed(pace, steepness, 600)[120:]
    assert RIGHT_KIB / 1.4 < statistics.geometric_mean(paces) < RIGHT_KIB * 1.4
    assert max(paces) < 2 * RIGHT_KIB


def test_a_moment_of_slowness_costs_a_minute() -> None:
    pace = Pace(1000, RIGHT_KIB, CEILING_NS)
    before = statistics.fmean(followed(pace, 1.0, 120))
    for _ in range(3):
        pace.learn(second(random.Random(1), 10 * CEILING_NS))
    assert pace.kib < before
    assert statistics.fmean(followed(pace, 1.0, 60)) > 0.4 * before
    assert statistics.fmean(followed(pace, 1.0, 60)[20:]) > 0.7 * before


def test_it_does_not_rise_where_a_few_requests_wait_for_long_now_and_then() -> None:
    """As beside a rebuild of RAID 10: most seconds look good, and yet the p99 is far too long."""
    pace, rng = Pace(1000, RIGHT_KIB, CEILING_NS), random.Random(0)
    slow = asked = 0
    for number in range(600):
        seen = second(rng, CEILING_NS / 5)
        if rng.random() < 0.3 * pace.kib / RIGHT_KIB:
            late = Counter({round(20 * CEILING_NS): 4})
            seen = Second(
                20, 20, 4, histogram={**second(rng, CEILING_NS / 5, 16).histogram, **late}
            )
        pace.learn(seen)
        if number >= 120:
            slow, asked = slow + int(seen.slow), asked + 20
    assert slow / asked < 0.02


def test_a_foreground_that_no_pace_helps_brings_it_to_the_floor_and_no_further() -> None:
    pace = Pace(1000, RIGHT_KIB, CEILING_NS)
    rng = random.Random(0)
    for _ in range(120):
        pace.learn(second(rng, 3 * CEILING_NS))
    assert (pace.kib, pace.at_floor) == (1000, True)


def test_where_nothing_is_slow_it_rises_to_what_the_disks_can_do() -> None:
    pace = Pace(1000, 2000, CEILING_NS)
    rng = random.Random(0)
    for _ in range(120):
        reached = 30_000.0 if pace.kib > 30_000 else None
        pace.learn(second(rng, CEILING_NS / 50), reached)
    assert 30_000 < pace.kib < 1.25 * 1.05 * 30_000


def test_without_a_request_nothing_is_learnt() -> None:
    pace = Pace(1000, 2000, CEILING_NS)
    pace.learn(Second(0, 0, 0.0))
    assert pace.kib == 2000
