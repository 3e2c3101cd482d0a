"""A guarded sync on its way: the deadline, the ceiling, and what is left, second by second."""

import math

import pytest

from autotune.guard.goals import CEILING, DEADLINE, POLICIES, Promise
from autotune.guard.outlook import CONFLICT_S, GRACE_S, LATE_S, SyncOutlook
from autotune.guard.pace import Share
from autotune.sync_forecast.platter import TYPICAL_KIB_S, Platter, assumed, flat

SIZE_KIB = 1_000_000.0
MS = 1e6


def drive(
    outlook: SyncOutlook,
    seconds: int,
    pace_kib: float,
    p99_ns: float | None = None,
    held: bool = True,
) -> float:
    """Let a sync go at a pace, but no slower than the outlook allows; the share that is done."""
    place = outlook.place
    for _ in range(seconds):
        pace = pace_kib if not held else max(pace_kib, min(outlook.least_kib, 10_000))
        place += pace / SIZE_KIB
        outlook.look(SIZE_KIB, place, pace, held, outlook._now_s + 1)
        outlook.judge(p99_ns, pace)
    return place


def test_what_the_disks_can_do_is_seen_at_full_speed_alone() -> None:
    outlook = SyncOutlook(Promise(), 1000, flat(1.0))
    drive(outlook, 10, 2000, held=True)
    assert not outlook.known
    drive(outlook, 3, 9000, held=False)
    assert outlook.known
    assert outlook.free_kib == pytest.approx(9000)


def test_a_forecast_makes_that_known_at_once() -> None:
    assert SyncOutlook(Promise(), 1000, flat(1.0), known=flat(9000)).known


def test_of_hard_disks_less_is_expected_further_inside() -> None:
    even, disks = (SyncOutlook(Promise(), 1000, each) for each in (flat(1.0), assumed(1.0)))
    for outlook in (even, disks):
        drive(outlook, 5, 10_000, held=False)
    assert disks.time_left().left_s > even.time_left().left_s  # type: ignore[operator]


@pytest.mark.parametrize("within_s", [150, 400, 900])
def test_a_date_that_can_be_met_is_met_at_a_pace_that_hardly_changes(within_s: int) -> None:
    promise = Promise(finish_s=within_s, spare_s=0.05 * within_s)
    outlook = SyncOutlook(promise, 100, flat(1.0), known=flat(10_000))
    drive(outlook, 1, 0)
    first = outlook.least_kib
    seconds = 1
    while outlook.place < 1:
        drive(outlook, 1, 0)
        seconds += 1
        if outlook.place < 0.9:
            assert outlook.least_kib == pytest.approx(first, rel=0.15)
    assert 0.8 * within_s < seconds <= within_s
    assert not outlook.impossible


@pytest.mark.parametrize(("within_s", "share"), [(2000, POLICIES["balanced"]), (10_000, 0.15)])
def test_a_date_that_nobody_named_binds_after_a_while_and_takes_no_more_than_balanced(
    within_s: int, share: float
) -> None:
    promise = Promise(50e6, within_s, asked=False)
    outlook = SyncOutlook(promise, 1, flat(1.0), known=flat(1000))
    drive(outlook, round(GRACE_S), 1, 60e6)
    assert (outlook.least_kib, outlook.late, outlook.impossible) == (1, False, False)
    drive(outlook, 1, 1)
    assert outlook.least_kib == pytest.approx(share * 1000, rel=0.3)
    assert outlook.least_kib <= POLICIES["balanced"] * 1000
    drive(outlook, round(CONFLICT_S) + 2, 1, 60e6)
    assert outlook.impossible
    # When it has passed, the sync is no faster for that.
    outlook._now_s = within_s
    drive(outlook, 1, 1)
    assert not outlook.late
    assert outlook.least_kib <= POLICIES["balanced"] * 1000


def test_what_was_lost_is_caught_up_with() -> None:
    outlook = SyncOutlook(Promise(finish_s=400), 100, flat(1.0), known=flat(10_000))
    drive(outlook, 1, 0)
    first = outlook.least_kib
    # As while another array's sync goes first.
    outlook.look(SIZE_KIB, outlook.place, 0, True, 200)
    assert outlook.least_kib > 1.5 * first


def test_a_date_that_is_lost_at_full_speed_is_said_after_a_moment() -> None:
    outlook = SyncOutlook(Promise(50 * MS, finish_s=60), 100, flat(1.0), known=flat(10_000))
    drive(outlook, 1, 10_000, held=False)
    assert outlook.late
    assert not outlook.impossible
    drive(outlook, int(LATE_S), 10_000, held=False)
    assert outlook.impossible
    assert outlook.least_kib == math.inf


def test_date_and_ceiling_exclude_each_other_only_after_a_while() -> None:
    outlook = SyncOutlook(Promise(50 * MS, finish_s=200), 100, flat(1.0), known=flat(10_000))
    drive(outlook, 1, 0)
    drive(outlook, int(CONFLICT_S) - 5, 0, p99_ns=80 * MS)
    assert not outlook.impossible
    drive(outlook, 10, 0, p99_ns=80 * MS)
    assert outlook.impossible
    drive(outlook, 2, 0, p99_ns=40 * MS)
    assert not outlook.impossible


def test_above_what_the_date_needs_a_slow_request_excludes_nothing() -> None:
    outlook = SyncOutlook(Promise(50 * MS, finish_s=900), 100, flat(1.0), known=flat(10_000))
    drive(outlook, 60, 5000, p99_ns=80 * MS)
    assert not outlook.impossible


def test_where_the_ceiling_goes_first_the_date_is_no_floor_but_is_said_to_be_lost() -> None:
    promise = Promise(50 * MS, finish_s=200, first=CEILING)
    outlook = SyncOutlook(promise, 100, flat(1.0), known=flat(10_000))
    drive(outlook, 1, 1000)
    assert outlook.least_kib == 100
    drive(outlook, int(CONFLICT_S) + 5, 1000, p99_ns=45 * MS)
    assert outlook.impossible
    assert promise.first != DEADLINE


def test_what_is_left_lies_between_users_that_leave_and_users_that_stay() -> None:
    outlook = SyncOutlook(Promise(50 * MS), 100, flat(1.0), known=flat(10_000))
    drive(outlook, 20, 2000)
    left = outlook.time_left()
    assert left.left_s is not None
    assert left.low_s is not None
    assert left.high_s is not None
    assert left.low_s < left.left_s < left.high_s
    assert left.low_s == pytest.approx((1 - outlook.place) * SIZE_KIB / 10_000, rel=0.01)


@pytest.mark.parametrize("known", [None, flat(100_000)])
@pytest.mark.parametrize("every", [1, 5, 10])
def test_what_is_left_at_a_slow_pace_is_true(known: Platter | None, every: int) -> None:
    """The throttle keeps it by bursts, after some seconds at full speed."""
    size, pace, done = 1e7, 1000.0, 0.0
    outlook = SyncOutlook(Promise(50 * MS), 1000, flat(1.0), known=known)
    for second in range(10):
        done += 100_000
        outlook.look(size, done / size, 100_000, second > 7, second)
    for second in range(10, 100):
        rate = pace * every if second % every == 0 else 0.0
        done += rate
        outlook.look(size, done / size, rate, True, second)
        left = outlook.time_left()
        if second < 60:
            continue
        true_s = (size - done) / pace
        assert left.left_s is not None
        assert left.high_s is not None
        assert left.left_s == pytest.approx(true_s, rel=0.25)
        assert left.high_s > 0.95 * true_s


@pytest.mark.parametrize("known", [None, flat(3000)])
def test_a_policy_that_began_at_a_peak_learns_that_it_is_over(known: Platter | None) -> None:
    outlook = SyncOutlook(Promise(share=0.15), 1000, flat(1.0), known=known)
    pace, done, full_s = Share(0.15), 0.0, 0
    for second in range(3600):
        free = 3000 if second < 60 else 150_000
        free_now = not outlook.known or outlook.due
        full_s += free_now and second > 60
        rate = free if free_now else min(free, pace.kib)
        done += rate
        outlook.look(8e9, done / 8e9, rate, not free_now, second)
        pace.hold(outlook.least_kib, outlook.free_kib)
    assert pace.kib == pytest.approx(0.15 * 150_000)
    assert 0 < full_s < 0.01 * 3600


LIMIT_KIB = 200_000


@pytest.mark.parametrize("known", [None, Platter((0.0, 1.0), (280_000, 140_000))])
def test_what_mds_limit_holds_is_not_taken_for_what_the_disks_can_do(known: Platter | None) -> None:
    """Large hard disks are faster than the usual limit, nearly to their end."""
    size = 2e10
    outlook = SyncOutlook(Promise(50 * MS), 1000, assumed(TYPICAL_KIB_S), known, LIMIT_KIB)
    for second in range(20):
        outlook.look(size, 0.0, LIMIT_KIB * 0.99, False, second)
    true_s = Platter((0.0, 1.0), (280_000, 140_000)).seconds(size, LIMIT_KIB)
    assert outlook.time_left().low_s == pytest.approx(true_s, rel=0.2 if known is None else 0.01)
    assert outlook.free_kib <= LIMIT_KIB


def test_disks_that_are_slower_than_mds_limit_are_seen_as_such() -> None:
    outlook = SyncOutlook(Promise(), 1000, assumed(TYPICAL_KIB_S), limit_kib=LIMIT_KIB)
    drive(outlook, 10, 100_000, held=False)
    assert outlook.free_kib == pytest.approx(100_000, rel=0.01)


def test_a_deadline_that_mds_limit_does_not_allow_is_lost() -> None:
    promise = Promise(finish_s=100)
    outlook = SyncOutlook(promise, 100, flat(1.0), flat(20_000), limit_kib=5000)
    drive(outlook, 15, 5000, held=False)
    assert outlook.late
    assert outlook.impossible
