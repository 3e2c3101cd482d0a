"""Which checks a forecast runs, on a bench whose answers are known."""

import contextlib
import dataclasses
import math
from collections import Counter
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import RefusalError, UsageError
from autotune.measure.foreground import ACCOUNTING, PROBE, Foreground, Second
from autotune.problem.figure import Estimate
from autotune.sync_forecast import measuring
from autotune.sync_forecast.bench import RAMP_S, CheckFigures
from autotune.sync_forecast.measuring import (
    CHANGE_S,
    MOST_S,
    PLACES,
    SHARES,
    ForecastOptions,
    _Steps,
    check_time,
)
from autotune.sync_forecast.model import Forecast
from autotune.sync_forecast.platter import assumed
from autotune.system.array import Array, Media, find_array

MS = 1e6
DISK = assumed(100_000)
IDLE_MS = 10.0


class Clock:
    """Stands for the module time."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s


CLOCK = Clock()


class FakeBench:
    """Disks that are half as fast at their end; a p99 of 10 ms that doubles at full speed."""

    def __init__(self, ceiling_ns: float, scale: float = 1.0, busy: bool = True) -> None:
        self.member_kib, self.size_kib = 1_000_000, 1_000_000 * scale
        self.found = {"sync_speed_min": 1000, "sync_speed_max": 200_000}
        self.limits: list[float] = []
        self.places: list[float] = []
        self.clock, self.overhead_s = CLOCK, RAMP_S + CHANGE_S
        self._ceiling_ns, self._scale, self._busy = ceiling_ns, scale, busy

    def users(self) -> tuple[bool, str, float]:
        return self._busy, ACCOUNTING if self._busy else PROBE, 0.1

    def limit(self, kib_s: float) -> None:
        self.limits.append(kib_s)

    def idle(self, seconds: float, _foreground: object) -> CheckFigures:
        self.clock.now_s += seconds + self.overhead_s
        return self._seen(None, IDLE_MS, users=True)

    def check(
        self, place: float, seconds: float, foreground: object = None, rated: bool = False
    ) -> CheckFigures:
        assert not rated or foreground is not None
        self.places.append(place)
        self.clock.now_s += seconds + self.overhead_s
        rate = min(self.limits[-1] / self._scale, DISK.at(place))
        slow_ms = IDLE_MS * (1 + rate / DISK.at(place))
        return self._seen(rate * self._scale, slow_ms, users=foreground is not None)

    def _seen(self, rate: float | None, p99_ms: float, users: bool) -> CheckFigures:
        taken = Counter({round(p99_ms * MS): 5, round(p99_ms * MS / 5): 95})
        seconds = [Second(100, 100, 0, histogram=taken)] * 20 if users else []
        known = Estimate(rate, 0.01) if rate is not None else None
        return CheckFigures(known, seconds, users and p99_ms * MS > self._ceiling_ns)


@pytest.fixture(autouse=True)
def no_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    CLOCK.now_s = 0.0
    monkeypatch.setattr(measuring, "time", CLOCK)
    monkeypatch.setattr(measuring, "Foreground", lambda *_: contextlib.nullcontext(Foreground))


@pytest.fixture
def array(tmp_path: Path) -> Array:
    fake_sysfs.raid6(tmp_path)
    return find_array("md0", tmp_path)


def measured(array: Array, bench: FakeBench, ceiling_ns: float = math.inf) -> Forecast:
    asked = ForecastOptions(Path("/nowhere"), ceiling_ns, 240, lambda _: None, lambda *_: None)
    return _Steps(array, bench, asked, 0.0).run()  # type: ignore[arg-type]


def test_it_goes_from_slow_to_fast_and_then_over_the_platter(array: Array) -> None:
    bench = FakeBench(math.inf)
    forecast = measured(array, bench)
    first, *slow_to_fast = bench.limits
    assert slow_to_fast == sorted(slow_to_fast)
    assert first == slow_to_fast[-1]
    assert bench.places[-len(PLACES) :] == list(PLACES)
    assert len(forecast.points) == len(SHARES) + 2
    assert forecast.places_measured
    assert forecast.platter.at(0.5) == pytest.approx(DISK.at(0.5), rel=0.02)
    assert forecast.full_kib_s == pytest.approx(75_000, rel=0.02)


def test_beyond_a_ceiling_nothing_faster_is_tried(array: Array) -> None:
    ceiling_ns = IDLE_MS * 1.4 * MS
    bench = FakeBench(ceiling_ns)
    forecast = measured(array, bench, ceiling_ns)
    # The first 40 % of full speed break it.
    assert max(bench.limits[1:]) == pytest.approx(0.4 * DISK.at(0.0), rel=0.01)
    assert forecast.stopped_ns == ceiling_ns
    assert not forecast.places_measured
    assert forecast.full_kib_s == pytest.approx(75_000, rel=0.02)


@pytest.mark.parametrize(("busy", "times"), [(True, 1), (False, 2)])
def test_users_feel_full_speed_once_if_that_alone_passes_the_ceiling(
    array: Array, busy: bool, times: int
) -> None:
    """Where nobody is, nobody does."""
    ceiling_ns = IDLE_MS * 1.9 * MS
    bench = FakeBench(ceiling_ns, busy=busy)
    forecast = measured(array, bench, ceiling_ns)
    assert bench.limits.count(max(bench.limits)) == times
    assert forecast.stopped_ns == ceiling_ns
    assert forecast.points[-1].kib_s == pytest.approx(DISK.at(0.0), rel=0.3)


def test_a_ceiling_that_is_broken_without_a_sync_ends_it_before_any_check(array: Array) -> None:
    bench = FakeBench(5 * MS)
    with pytest.raises(RefusalError, match="without any sync"):
        measured(array, bench, 5 * MS)
    assert (bench.limits, bench.places) == ([], [])


def test_raid10_goes_by_the_array_but_is_told_by_the_member(array: Array) -> None:
    bench = FakeBench(math.inf, scale=2)
    forecast = measured(dataclasses.replace(array, level="raid10"), bench)
    assert forecast.full_kib_s == pytest.approx(75_000, rel=0.02)
    assert forecast.points[1].kib_s == pytest.approx(0.08 * 100_000)
    assert bench.limits[1] == pytest.approx(0.08 * 200_000)


def test_flash_is_not_looked_at_place_by_place(array: Array) -> None:
    members = tuple(dataclasses.replace(m, media=Media.SSD) for m in array.members)
    bench = FakeBench(math.inf)
    forecast = measured(dataclasses.replace(array, members=members), bench)
    assert len(bench.places) == 1 + len(SHARES) + 1
    assert forecast.platter.at(0.9) == forecast.platter.at(0.1)


@pytest.mark.parametrize("overhead_s", [RAMP_S + CHANGE_S, 8.0, 24.0])
def test_a_busy_machine_makes_it_shorter_and_not_longer(array: Array, overhead_s: float) -> None:
    bench = FakeBench(math.inf)
    bench.overhead_s = overhead_s
    forecast = measured(array, bench)
    assert 200 < CLOCK.now_s <= MOST_S
    assert len(forecast.points) == len(SHARES) + 2
    # The places are what there may be no time for.
    assert forecast.places_measured == (overhead_s < 10)


@pytest.mark.parametrize("seconds", [60, 301])
def test_it_takes_minutes_and_no_more(seconds: float) -> None:
    with pytest.raises(UsageError, match="3 to 5 minutes"):
        check_time(seconds)
