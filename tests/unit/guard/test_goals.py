"""The pace that a promise asks for, from what remains and the time that is left."""

import math
from datetime import datetime

import pytest

from autotune.errors import UsageError
from autotune.guard.goals import (
    CEILING,
    DEADLINE,
    POLICIES,
    REBUILD_S,
    RESERVE,
    Goals,
    Promise,
    Remains,
    least_kib,
    needed_kib,
    parse_moment,
)
from autotune.sync_forecast.platter import assumed, flat
from autotune.system.sync import parse_within

SIZE_KIB = 1_000_000.0
MONDAY = datetime(2026, 11, 23, 14, 30)


def remains(place: float = 0.0, free_kib: float = 10_000) -> Remains:
    return Remains(SIZE_KIB, place, flat(free_kib))


def test_without_a_date_no_pace_is_needed() -> None:
    assert needed_kib(Promise(50e6), remains(), 0) == 0
    assert least_kib(Promise(50e6), 0, 1000) == 1000


def test_the_needed_pace_leaves_a_reserve() -> None:
    promise = Goals(within_s=1000).promise("recover", MONDAY)
    assert promise.spare_s == pytest.approx(1000 * RESERVE)
    needed = needed_kib(promise, remains(), MONDAY.timestamp())
    assert needed == pytest.approx(SIZE_KIB / (1000 - promise.spare_s), rel=0.01)


def test_it_rises_as_time_goes_by_and_falls_as_the_sync_gets_on() -> None:
    promise = Promise(finish_s=1000)
    now, later = (needed_kib(promise, remains(), at) for at in (0, 500))
    further = needed_kib(promise, remains(0.75), 500)
    assert now is not None
    assert later is not None
    assert further is not None
    assert further < now < later


def test_disks_that_are_slower_inside_have_to_begin_faster() -> None:
    promise = Promise(finish_s=130)
    even = needed_kib(promise, remains(free_kib=10_000), 0)
    uneven = needed_kib(promise, Remains(SIZE_KIB, 0.0, assumed(12_000)), 0)
    assert even is not None
    assert uneven is not None
    assert uneven > even


def test_a_date_that_full_speed_just_meets_has_no_reserve_and_one_beyond_is_lost() -> None:
    assert needed_kib(Promise(finish_s=101, spare_s=5), remains(), 0) == 10_000
    assert needed_kib(Promise(finish_s=99), remains(), 0) is None
    assert needed_kib(Promise(finish_s=99), remains(), 100) is None
    assert least_kib(Promise(finish_s=99), None, 1000) == math.inf


def test_who_goes_first_decides_whether_the_date_is_a_floor() -> None:
    assert least_kib(Promise(50e6, 1000, first=DEADLINE), 5000, 1000) == 5000
    assert least_kib(Promise(50e6, 1000, first=CEILING), 5000, 1000) == 1000


def test_a_date_alone_holds_in_a_check_too() -> None:
    promise = Goals(within_s=1000).promise("check", MONDAY)
    assert promise.binds
    assert least_kib(promise, 5000, 1000) == 5000


@pytest.mark.parametrize(
    ("action", "first"),
    [("recover", DEADLINE), ("resync", DEADLINE), ("check", CEILING), ("repair", CEILING)],
)
def test_the_date_goes_first_where_redundancy_is_at_stake(action: str, first: str) -> None:
    assert Goals(within_s=60).promise(action, MONDAY).first == first
    assert Goals(within_s=60, first=DEADLINE).promise(action, MONDAY).first == DEADLINE


def test_a_date_is_of_the_sync_and_not_of_the_guard() -> None:
    assert Goals(within_s=60).promise("check", MONDAY).finish_s == MONDAY.timestamp() + 60
    by = Goals(by="16:00").promise("check", MONDAY).finish_s
    assert by == MONDAY.replace(hour=16, minute=0).timestamp()


def test_a_rebuild_that_a_ceiling_alone_may_make_endless_has_a_deadline() -> None:
    long_s = REBUILD_S + 1
    promise = Goals(50e6).promise("recover", MONDAY, long_s)
    assert (promise.finish_s, promise.asked) == (MONDAY.timestamp() + REBUILD_S, False)
    assert promise.binds
    assert promise.spare_s == pytest.approx(RESERVE * REBUILD_S)
    # What the configuration says somebody has named.
    sooner = Goals(50e6, rebuild_s=86_400).promise("resync", MONDAY, 80_000)
    assert (sooner.finish_s, sooner.asked) == (MONDAY.timestamp() + 86_400, True)
    for goals, action, slowest_s in (
        (Goals(50e6), "recover", REBUILD_S),
        (Goals(50e6), "check", long_s),
        (Goals(policy="foreground"), "recover", long_s),
        (Goals(50e6, policy="foreground"), "recover", long_s),
        (Goals(), "recover", long_s),
    ):
        left = goals.promise(action, MONDAY, slowest_s)
        assert (left.finish_s, left.asked) == (None, True)
    named = Goals(50e6, within_s=60).promise("recover", MONDAY, long_s)
    assert (named.finish_s, named.asked) == (MONDAY.timestamp() + 60, True)


def test_policies_differ_by_twice_the_time_at_least() -> None:
    shares = [POLICIES[name] for name in ("rebuild", "balanced", "foreground")]
    assert shares[0] >= 2 * shares[1] >= 4 * shares[2] > 0
    assert Goals(policy="balanced").promise("check", MONDAY).share == POLICIES["balanced"]


@pytest.mark.parametrize(
    ("text", "day", "hour"),
    [
        ("16:00", 23, 16),
        ("06:00", 24, 6),
        ("Mon 16:00", 23, 16),
        ("mon 06:00", 30, 6),
        ("Sunday 06:00", 29, 6),
        ("2026-11-25 06:00", 25, 6),
    ],
)
def test_a_moment_is_the_next_one_of_its_name(text: str, day: int, hour: int) -> None:
    assert parse_moment(text, MONDAY) == datetime(2026, 11, day, hour, 0)


@pytest.mark.parametrize(
    "text", ["", "6", "24:00", "12:60", "Foo 06:00", "2026-11-20 06:00", "Mon", "a b 06:00"]
)
def test_what_is_no_moment_to_come_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write it like 06:00"):
        parse_moment(text, MONDAY)


def test_a_date_that_no_sync_needs_is_refused() -> None:
    assert parse_within("30d") == 30 * 86400
    with pytest.raises(UsageError, match="more than a year"):
        parse_within("400d")
