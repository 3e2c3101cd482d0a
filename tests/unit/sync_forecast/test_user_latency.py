"""Percentiles of some seconds, from the kernel's counters or a probe."""

import random
from collections import Counter

import pytest

from autotune.measure.accounting import Batch
from autotune.measure.foreground import Second
from autotune.sync_forecast.user_latency import felt, surely_over

MS = 1e6
RNG = random.Random(3)


def probed(seconds: int, requests: int = 40, mean_ms: float = 20) -> list[Second]:
    """Exponential latencies, whose p99 is 4.6 times their mean."""
    found = []
    for _ in range(seconds):
        taken = [round(RNG.expovariate(1 / mean_ms) * MS) for _ in range(requests)]
        found.append(Second(requests, requests, 0, histogram=Counter(taken)))
    return found


def counted(seconds: int, requests: int = 40, mean_ms: float = 20) -> list[Second]:
    """The same as the counters show them: one by one."""
    found = []
    for _ in range(seconds):
        taken = [int(RNG.expovariate(1 / mean_ms) * MS) + 1 for _ in range(requests)]
        found.append(Second(requests, requests, 0, tuple(Batch(1, ns, (ns,)) for ns in taken)))
    return found


@pytest.mark.parametrize("source", [probed, counted])
def test_both_sources_tell_the_percentile_within_its_interval(source: object) -> None:
    held = 0
    for _ in range(20):
        found = felt(source(30), 99)  # type: ignore[operator]
        assert found is not None
        low, high = found.interval
        held += low <= 4.605 * 20 * MS <= high
    assert held >= 17


@pytest.mark.parametrize("source", [probed, counted])
def test_from_a_few_requests_there_is_no_p99(source: object) -> None:
    assert felt(source(5), 99) is None  # type: ignore[operator]
    assert felt([], 99) is None
    assert felt(source(5), 50) is not None  # type: ignore[operator]


@pytest.mark.parametrize("source", [probed, counted])
def test_only_what_is_beyond_doubt_is_over(source: object) -> None:
    seconds = source(20)  # type: ignore[operator]
    assert surely_over(seconds, 30 * MS)
    assert not surely_over(seconds, 110 * MS)
    assert not surely_over(seconds[:2], 85 * MS)
    assert not surely_over([], 30 * MS)
