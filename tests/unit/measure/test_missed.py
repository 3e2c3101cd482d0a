"""Requests that were sent late, since their user waited for another."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.missed import Missed
from autotune.stats.histogram import difference, slower, total

S, MS = 1_000_000_000, 1_000_000
HISTOGRAMS = st.lists(
    st.dictionaries(st.integers(1, 10 * S), st.integers(1, 50), max_size=8), min_size=1, max_size=5
)


def test_those_sent_after_a_wait_would_have_had_the_rest_of_it() -> None:
    # Four a second, so four were missed in a second; of the fast ones, as many are those.
    assert Missed(4).felt({S: 1, 20 * MS: 10}) == {
        S: 1,
        875 * MS: 1,
        625 * MS: 1,
        375 * MS: 1,
        125 * MS: 1,
        20 * MS: 6,
    }


def test_fio_may_tell_of_them_a_document_later() -> None:
    missed = Missed(4)
    assert missed.felt({S: 1}) == {S: 1}
    assert slower(missed.felt({S: 1, 20 * MS: 10}), 100 * MS) == 5
    # What was never sent by then is forgotten.
    missed = Missed(4)
    missed.felt({S: 1})
    missed.felt({S: 2})
    assert slower(missed.felt({S: 2, 20 * MS: 100}), 100 * MS) == 6


def test_in_a_queue_where_all_are_slow_nothing_is_missed() -> None:
    assert Missed(7).felt({300 * MS: 50}) == {300 * MS: 50}


@given(HISTOGRAMS, st.integers(1, 20))
def test_there_are_as_many_requests_and_they_add_up(
    parts: list[dict[int, int]], each_iops: int
) -> None:
    missed, before = Missed(each_iops), dict[int, int]()
    for told in itertools.accumulate(parts, lambda a, b: total([a, b])):
        felt = missed.felt(told)
        assert sum(felt.values()) == sum(told.values())
        assert total([before, difference(felt, before)]) == felt
        before = dict(felt)


def test_it_comes_near_users_who_wait_for_nobody() -> None:
    """Against stalls of 1.2 s each 12 s, in which all requests wait."""
    rng, users, each_iops, seconds = random.Random(1), 5, 4, 4000

    def took(at_s: float) -> float:
        return max(1.2 - at_s % 12, 0.0) + 0.01

    open_loop = [took(rng.uniform(0, seconds)) for _ in range(users * each_iops * seconds)]
    told: list[tuple[float, float]] = []
    for _ in range(users):
        due = free = 0.0
        while due < seconds:
            sent = max(due, free)
            free = sent + took(sent)
            told.append((free, free - sent))
            due += rng.expovariate(each_iops)
    missed, histogram = Missed(each_iops), dict[int, int]()
    for _, second in itertools.groupby(sorted(told), key=lambda each: int(each[0])):
        for _, took_s in second:
            ns = round(took_s * S)
            histogram[ns] = histogram.get(ns, 0) + 1
        felt = missed.felt(dict(histogram))
    truth = sum(s > 0.2 for s in open_loop) / len(open_loop)
    raw, ours = (slower(h, 0.2 * S) / sum(h.values()) for h in (histogram, felt))
    assert raw < truth / 2.5
    assert 0.85 * truth < ours < 1.15 * truth
