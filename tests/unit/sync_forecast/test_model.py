"""What some measured speeds say of all others."""

import dataclasses
import json

import pytest
from some_forecast import MS, POINTS, point, some_forecast

from autotune.problem.figure import Estimate
from autotune.sync_forecast.isotonic import rising
from autotune.sync_forecast.model import ACTIONS, CHECK, REBUILD, from_document


def test_a_slower_sync_takes_longer_and_full_speed_is_the_shortest() -> None:
    forecast = some_forecast()
    times = [forecast.time(REBUILD, kib_s).value for kib_s in (10_000, 50_000, 100_000, 200_000)]
    assert times == sorted(times, reverse=True)
    assert times[-1] == pytest.approx(forecast.time(REBUILD).value)
    assert times[0] == pytest.approx(forecast.member_kib / 10_000)


def test_what_writes_is_known_less_well_than_the_check_that_was_measured() -> None:
    forecast = some_forecast()
    assert forecast.time(REBUILD).spread > forecast.time(CHECK).spread > forecast.rate_spread
    raid10 = dataclasses.replace(forecast, level="raid10")
    assert raid10.time(REBUILD).spread > 2 * forecast.time(REBUILD).spread
    assert raid10.time(REBUILD, 10_000).spread == forecast.time(REBUILD, 10_000).spread


def test_users_make_a_rebuild_slower_than_a_check_and_most_so_at_its_beginning() -> None:
    """The other members serve the reads of the one that is missing too."""
    alone, used = some_forecast(), dataclasses.replace(some_forecast(), users_share=0.2)
    assert alone.time(REBUILD).value == pytest.approx(alone.time(CHECK).value, rel=0.001)
    assert used.time(REBUILD).value > 1.05 * used.time(CHECK).value
    rebuild, check = used.curve(REBUILD), used.curve(CHECK)
    assert rebuild.at(0.0) / check.at(0.0) == pytest.approx(0.6 / 0.8)
    assert rebuild.at(1.0) == pytest.approx(check.at(1.0))
    slow, fast = (each.p99(REBUILD, 40_000) for each in (used, alone))
    assert slow is not None
    assert fast is not None
    assert slow.value > 1.03 * fast.value


def test_a_raid10_rebuild_is_felt_more_than_a_check() -> None:
    """How much is less well known."""
    raid10 = dataclasses.replace(some_forecast(), level="raid10")
    checked, felt = raid10.p99(CHECK, 80_000), raid10.p99(REBUILD, 80_000)
    assert checked is not None
    assert felt is not None
    assert felt.spread > checked.spread
    assert felt.value > 1.5 * checked.value


def test_the_speed_for_a_date_meets_it() -> None:
    forecast = some_forecast()
    day = 86_400 * 3
    speed = forecast.speed_for(day)
    assert speed is not None
    assert forecast.time(REBUILD, speed).value == pytest.approx(day, rel=0.005)
    assert forecast.speed_for(3600) is None


def test_a_p99_between_two_speeds_lies_between_theirs_and_never_falls() -> None:
    forecast = some_forecast()
    speeds = range(0, 160_000, 5000)
    found = [forecast.p99(CHECK, kib_s) for kib_s in speeds]
    values = [each.value for each in found if each is not None]
    assert len(values) == len(speeds)
    assert values == sorted(values)
    assert values[0] == pytest.approx(12 * MS)
    middle = forecast.p99(CHECK, 60_000)
    assert middle is not None
    assert 30 * MS < middle.value < 50 * MS


def test_a_ceiling_and_its_speed_belong_together() -> None:
    forecast = some_forecast()
    speed = forecast.speed_under(40 * MS, REBUILD)
    assert speed is not None
    felt = forecast.p99(REBUILD, speed)
    assert felt is not None
    assert felt.value == pytest.approx(40 * MS, rel=0.01)
    assert forecast.speed_under(5 * MS, REBUILD) is None
    assert forecast.speed_under(10_000 * MS, REBUILD) == forecast.full_kib_s


def test_noise_that_falls_is_evened_out_by_what_is_known_better() -> None:
    sure, unsure = Estimate(30 * MS, 0.01), Estimate(20 * MS, 0.2)
    evened = rising([(1.0, Estimate(10 * MS, 0.05)), (2.0, sure), (3.0, unsure)])
    assert [each.value for _, each in evened][1:] == pytest.approx([30 * MS] * 2, rel=0.01)


def test_the_knee_has_the_most_speed_for_its_latency() -> None:
    knee = some_forecast().knee
    assert knee is not None
    assert knee.kib_s == 80_000
    assert some_forecast(POINTS[:3]).knee is None


def test_without_requests_nothing_is_said_of_latency() -> None:
    points = tuple(dataclasses.replace(p, p50=None, p99=None) for p in POINTS)
    forecast = some_forecast(points)
    assert forecast.p99(REBUILD, 10_000) is None
    assert forecast.speed_under(50 * MS, REBUILD) is None
    assert forecast.knee is None
    assert all(forecast.time(action, 10_000).value > 0 for action in ACTIONS)


def test_it_comes_back_from_json_as_it_was() -> None:
    forecast = dataclasses.replace(some_forecast(), points=(*POINTS, point(150_000, 120)))
    assert from_document(json.loads(json.dumps(forecast.document()))) == forecast


def test_a_limit_spares_the_users_of_a_rebuild_less_than_those_of_a_check() -> None:
    forecast = some_forecast()
    full = forecast.full_kib_s

    def felt(action: str, kib_s: float) -> float:
        found = forecast.p99(action, kib_s)
        assert found is not None
        return found.value

    check = felt(CHECK, full / 2) / felt(CHECK, full)
    rebuild = felt(REBUILD, full / 2) / felt(REBUILD, full)
    assert rebuild == pytest.approx(check**0.5)
    slow = felt(REBUILD, 1000) / felt(REBUILD, full)
    assert slow == pytest.approx(felt(CHECK, 1000) / felt(CHECK, full), rel=0.05)


def test_no_speed_is_named_that_no_limit_can_set() -> None:
    forecast = some_forecast()
    idle = forecast.p99(CHECK, 0.0)
    assert idle is not None
    for action in (CHECK, REBUILD):
        slow = forecast.speed_under(1.001 * idle.value, action)
        assert slow is None or slow >= 1000
    fast, slow = (forecast.speed_under(2 * idle.value, each) for each in (CHECK, REBUILD))
    assert fast is not None
    assert slow is None or slow < fast
