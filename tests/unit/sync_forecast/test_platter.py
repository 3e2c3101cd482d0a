"""Hours from the speed at some places of a disk, against arithmetic."""

import math

import pytest

from autotune.sync_forecast.platter import Platter, assumed, flat, measured

SIZE_KIB = 1_000_000


def test_flash_takes_its_size_over_its_speed() -> None:
    assert flat(500).seconds(SIZE_KIB) == pytest.approx(2000)
    assert flat(500).seconds(SIZE_KIB, limit_kib_s=100) == pytest.approx(10_000)


def test_a_disk_half_as_fast_inside_is_on_average_three_quarters_as_fast() -> None:
    # On a spiral the rate falls evenly in time.
    assert assumed(400).seconds(SIZE_KIB) == pytest.approx(SIZE_KIB / 300, rel=0.002)


def test_a_limit_holds_only_where_the_disk_is_faster() -> None:
    disk = assumed(400)
    free, held = disk.seconds(SIZE_KIB), disk.seconds(SIZE_KIB, limit_kib_s=300)
    assert held > SIZE_KIB / 300
    assert free < held < SIZE_KIB / 200
    assert disk.seconds(SIZE_KIB, limit_kib_s=100) == pytest.approx(SIZE_KIB / 100)


def test_the_inner_half_takes_longer_than_the_outer() -> None:
    whole, inner = (assumed(400).seconds(SIZE_KIB, start=start) for start in (0.0, 0.5))
    assert inner / 2 > (whole - inner) / 2
    assert assumed(400).seconds(SIZE_KIB, start=1.0) == 0


@pytest.mark.parametrize("disk", [flat(300), assumed(400)])
@pytest.mark.parametrize("start", [0.0, 0.6])
def test_the_least_limit_for_a_date_is_just_enough(disk: Platter, start: float) -> None:
    needed = disk.limit_for(SIZE_KIB, 6000, start)
    assert needed is not None
    assert disk.seconds(SIZE_KIB, needed, start) == pytest.approx(6000, rel=0.005)


def test_no_limit_is_enough_for_a_date_that_full_speed_misses() -> None:
    assert flat(100).limit_for(SIZE_KIB, 9_999) is None
    assert flat(100).limit_for(SIZE_KIB, 0) is None
    assert flat(100).limit_for(SIZE_KIB, 10_001) is not None
    assert flat(100).limit_for(SIZE_KIB, 10, start=1.0) == 0


def test_what_lies_between_places_follows_the_spiral() -> None:
    # Of 100 and 50, the square falls evenly: 10000, 6250 half way, 2500.
    disk = measured((0.0, 1.0), (100.0, 50.0))
    assert disk.at(0.5) == pytest.approx(math.sqrt(6250))
    assert measured((0.0, 0.9), (100.0, math.sqrt(3250))).at(1.0) == pytest.approx(50, rel=0.01)


def test_a_place_that_was_disturbed_does_not_make_the_disk_rise() -> None:
    disk = measured((0.0, 0.3, 0.6, 0.9), (100.0, 60.0, 80.0, 55.0))
    assert disk.kib_s == (100.0, 70.0, 70.0, 55.0)


def test_a_curve_can_be_put_through_what_is_seen_now() -> None:
    disk = assumed(400).through(0.5, 100)
    assert disk.at(0.5) == pytest.approx(100)
    assert disk.at(1.0) / disk.at(0.0) == pytest.approx(0.5)
