"""What counters say about single requests."""

from pathlib import Path

import fake_sysfs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure import accounting
from autotune.measure.accounting import MS, Batch, Counts, Looks
from autotune.system.array import find_array

LATENCIES = st.lists(st.lists(st.integers(1, 10**9), min_size=1, max_size=6), min_size=1)


def batches(groups: list[list[int]]) -> list[Batch]:
    return [Batch(len(group), sum(group)) for group in groups]


@given(LATENCIES, st.integers(1, 10**9))
def test_the_bounds_hold_whatever_ended_together(groups: list[list[int]], ns: int) -> None:
    seen = batches(groups)
    slow = sum(latency >= ns for group in groups for latency in group)
    assert accounting.slow_at_least(seen, ns) <= slow <= accounting.slow_at_most(seen, ns)


@given(st.lists(st.integers(1, 10**9), min_size=1), st.integers(1, 10**9))
def test_requests_that_end_alone_are_known_exactly(latencies: list[int], ns: int) -> None:
    seen = batches([[latency] for latency in latencies])
    slow = sum(latency >= ns for latency in latencies)
    assert accounting.slow_at_least(seen, ns) == slow == accounting.slow_at_most(seen, ns)


@given(LATENCIES)
def test_the_percentile_is_between_its_bounds(groups: list[list[int]]) -> None:
    flat = sorted(latency for group in groups for latency in group)
    # The largest that not more than one in a hundred exceeds.
    true = flat[len(flat) - 1 - int(len(flat) * 0.01)]
    found = accounting.percentile(batches(groups), 99)
    assert found is not None
    assert found.at_least * 0.99 <= max(true, MS / 10)
    assert true * 0.99 <= found.at_most <= max(map(sum, groups)) + MS
    assert found.at_least <= found.likely <= found.at_most


def test_no_requests_have_no_percentile() -> None:
    assert accounting.percentile([], 99) is None


def test_reads_and_writes_are_told_apart_and_nothing_else_counts() -> None:
    before = accounting.parse("10 0 80 100 5 0 40 50 0 150 150 0 0 0 0 0 0")
    after = accounting.parse("12 0 96 130 6 0 48 90 3 190 220 9 0 72 900 4 44")
    looks = Looks(before, 0.0)
    found = looks.look(after, 0.02)
    assert [(b.requests, b.total_ns) for b in found] == [(2, 30 * MS), (1, 40 * MS)]
    assert looks.look(after, 0.04) == []


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 500)), min_size=1, max_size=60),
    st.integers(2, 600),
    st.booleans(),
)
def test_how_many_were_in_flight_bounds_what_each_took(
    requests: list[tuple[int, int]], slow_ms: int, early: bool
) -> None:
    """Requests as (begin, taken) in ms, looked at every 20 ms, whenever the kernel counts them."""

    def counts(now_ms: int) -> Counts:
        ended = [taken for begin, taken in requests if begin + taken <= now_ms]
        in_flight = sum(begin <= now_ms < begin + taken for begin, taken in requests)
        count = len(ended) + in_flight * early
        return Counts(Batch(count, sum(ended) * MS), Batch(0, 0), in_flight)

    looks, found = Looks(counts(-1), -0.001, early), []
    for now_ms in range(19, 2600, 20):
        found += looks.look(counts(now_ms), now_ms / 1000)
    slow = sum(taken >= slow_ms for _, taken in requests)
    assert accounting.total(found) == len(requests)
    assert accounting.slow_at_least(found, slow_ms * MS) <= slow
    assert slow <= accounting.slow_at_most(found, slow_ms * MS)


def test_many_fast_requests_that_end_together_are_not_taken_for_slow_ones() -> None:
    """40 that took 5 ms each came and went between two looks: 200 ms in all, and none slow."""
    looks = Looks(Counts(Batch(0, 0), Batch(0, 0), 0), 0.0)
    found = looks.look(Counts(Batch(40, 200 * MS), Batch(0, 0), 0), 0.02)
    assert accounting.slow_at_most(found, 100 * MS) == 0


@pytest.mark.parametrize(
    ("level", "kernel", "whole"),
    [
        ("raid5", "6.1.0-13-amd64", True),
        ("raid6", "5.14.0", True),
        ("raid6", "5.10.0", False),
        ("raid1", "6.1.0", False),
        ("raid10", "6.12.0", False),
    ],
)
def test_only_where_the_kernel_counts_all_of_it(
    tmp_path: Path, level: str, kernel: str, whole: bool
) -> None:
    machine = fake_sysfs.raid6(tmp_path, level)
    machine.put("proc/sys/kernel/osrelease", kernel)
    assert accounting.whole(find_array("md0", machine.root)) is whole
    machine.put("sys/block/md0/queue/iostats", "0")
    assert not accounting.whole(find_array("md0", machine.root))


def test_a_kernel_that_counts_at_the_end_is_found_out() -> None:
    """As that of a distribution that has taken the change into an older one."""
    looks = Looks(Counts(Batch(0, 0), Batch(0, 0), 0), 0.0, early=True)
    for n in range(accounting.CONTRADICTIONS):
        assert looks.look(Counts(Batch(n, n * MS), Batch(0, 0), 1), n + 0.1) == []
        looks.look(Counts(Batch(n + 1, (n + 1) * MS), Batch(0, 0), 0), n + 0.2)
    done = accounting.CONTRADICTIONS
    seen = Counts(Batch(done + 1, (done + 9) * MS), Batch(0, 0), 1)
    assert [(b.requests, b.total_ns) for b in looks.look(seen, done + 0.1)] == [(1, 9 * MS)]
