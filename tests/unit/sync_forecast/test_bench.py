"""How long a check of a forecast goes on, on disks and users that are made up."""

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any, cast

import fake_sysfs
import pytest

from autotune.measure.foreground import Foreground, Second
from autotune.sync_forecast import bench as bench_module
from autotune.sync_forecast.bench import RAMP_S, CheckBench
from autotune.system.array import find_array

MS = 1_000_000
CEILING_NS = 30.0 * MS
SECONDS, KIB_S = 20.0, 40_000


class Clock:
    """Stands for the module time."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Users:
    """They make 40 requests a second, all equally slow."""

    def __init__(self, slow_ms: float) -> None:
        self._slow_ns, self._told_s = round(slow_ms * MS), 0.0

    def look(self, now_s: float) -> Second | None:
        if now_s - self._told_s < 1:
            return None
        self._told_s = now_s
        return Second(40, 40, 0, histogram=Counter({self._slow_ns: 40}))

    def forget(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    class Check(contextlib.nullcontext[None]):
        def __init__(self, *_: object) -> None:
            super().__init__()

        def done_bytes(self) -> int:
            return int(clock.now_s * KIB_S) * 1024

    monkeypatch.setattr(bench_module, "time", clock)
    monkeypatch.setattr(bench_module, "Check", Check)
    return clock


@pytest.fixture
def bench(tmp_path: Path) -> CheckBench:
    class Watch:
        def expect(self, _setting: object) -> None:
            pass

        def __call__(self) -> None:
            pass

    fake_sysfs.raid6(tmp_path)
    return CheckBench(find_array("md0", tmp_path), cast(Any, None), cast(Any, Watch()), CEILING_NS)


def users(slow_ms: float) -> Foreground:
    return cast(Foreground, Users(slow_ms))


@pytest.mark.parametrize("rated", [False, True])
def test_a_check_that_users_bear_goes_on_for_its_time(
    bench: CheckBench, clock: Clock, rated: bool
) -> None:
    seen = bench.check(0.5, SECONDS, users(10), rated)
    assert not seen.over
    assert clock.now_s >= RAMP_S + SECONDS
    assert seen.kib_s is not None
    assert abs(seen.kib_s.value / KIB_S - 1) < 0.05


def test_one_that_is_too_much_for_them_ends_as_soon_as_that_is_sure(
    bench: CheckBench, clock: Clock
) -> None:
    assert bench.check(0.5, SECONDS, users(200)).over
    assert clock.now_s < RAMP_S + SECONDS / 4


def test_at_full_speed_they_bear_no_more_than_it_takes_to_know_it(
    bench: CheckBench, clock: Clock
) -> None:
    seen = bench.check(0.0, SECONDS, users(200), rated=True)
    assert seen.over
    assert seen.kib_s is not None
    assert abs(seen.kib_s.value / KIB_S - 1) < 0.05
    assert clock.now_s < RAMP_S + SECONDS / 2


def test_who_listens_to_nobody_sees_a_whole_check(bench: CheckBench, clock: Clock) -> None:
    assert not bench.check(0.0, SECONDS).over
    assert clock.now_s >= RAMP_S + SECONDS
