"""When a ceiling is out of reach, window by window."""

import pytest

from autotune.guard.feasibility import LONG_S, VAIN_S, Feasibility

WINDOW_S = 5.0
GOOD_NS, BAD_NS, CEILING_NS = 20e6, 90e6, 50e6


def looked(pace_kib: float | None, bad_s: int, good_s: int, seconds: float) -> list[float]:
    """What is known after each window of users whose requests are slow in bursts."""
    feasibility, found = Feasibility(CEILING_NS, 1000, WINDOW_S), []
    for number in range(round(seconds / WINDOW_S)):
        bad = number * WINDOW_S % (bad_s + good_s) < bad_s
        feasibility.look(pace_kib, BAD_NS if bad else GOOD_NS)
        found.append(feasibility.out_for_s)
    return found


def test_a_ceiling_that_is_never_held_is_out_of_reach_after_minutes() -> None:
    found = looked(1000, 60, 0, 2 * VAIN_S)
    assert found.index(VAIN_S) == VAIN_S / WINDOW_S - 1


@pytest.mark.parametrize(("bad_s", "good_s"), [(20, 100), (40, 60), (120, 60)])
def test_so_is_one_that_users_break_in_bursts_after_half_an_hour(bad_s: int, good_s: int) -> None:
    found = looked(1200, bad_s, good_s, 2 * LONG_S)
    assert found.index(LONG_S) == LONG_S / WINDOW_S - 1
    assert found[-1] == LONG_S


@pytest.mark.parametrize(
    ("pace_kib", "bad_s", "good_s"), [(1200, 5, 95), (20_000, 40, 60), (None, 60, 0)]
)
def test_it_is_in_reach_where_it_mostly_holds_or_the_sync_gets_on(
    pace_kib: float | None, bad_s: int, good_s: int
) -> None:
    assert not any(looked(pace_kib, bad_s, good_s, 2 * LONG_S))
