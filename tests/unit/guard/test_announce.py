"""What a guard says of its policy, its deadline and its progress."""

import dataclasses
import math
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_sysfs
import pytest
from some_forecast import some_forecast

from autotune.guard.announce import News, curve
from autotune.guard.goals import CEILING, DEADLINE, Goals
from autotune.guard.window import Window
from autotune.quantities import show_ends, show_seconds
from autotune.sync_forecast.model import Forecast
from autotune.system.array import find_array

ARRAY: Any = SimpleNamespace(device="/dev/md0", level="raid6")
NOW = datetime(2026, 11, 23, 12, 0)
QUIET = Window(
    time_s=NOW.timestamp(),
    p99_ns=80e6,
    p99_at_least_ns=70e6,
    p99_at_most_ns=90e6,
    samples=500,
    source="accounting",
    sync_bytes_per_s=40e6,
    sync_speed_max_kib=40_000,
    foreground_iops=60.0,
    share=0.1,
    left_s=7200.0,
    left_low_s=3600.0,
    left_high_s=9000.0,
    out_of_reach=False,
    finish_s=None,
    needed_kib=None,
    impossible=False,
)


def news(
    goals: Goals,
    action: str = "recover",
    known: Forecast | None = None,
    limit_kib: float = math.inf,
) -> News:
    return News(ARRAY, action, goals, goals.promise(action, NOW), known, limit_kib)


def after(seconds: float, **changes: object) -> Window:
    return dataclasses.replace(QUIET, time_s=QUIET.time_s + seconds, **changes)  # type: ignore[arg-type]


def test_a_policy_says_before_what_it_costs_if_a_forecast_knows() -> None:
    said = news(Goals(policy="balanced"), known=some_forecast())
    (text,) = said.before()
    assert text.startswith("Policy balanced: a whole rebuild takes ")
    assert "p99 of" in text
    assert not [*said.of(after(0)), *said.of(after(60))]


def test_without_a_forecast_it_says_so_after_the_first_minute_and_once() -> None:
    said = news(Goals(policy="foreground"))
    assert not list(said.before())
    assert not list(said.of(after(0)))
    (text,) = said.of(after(50))
    assert "will take 1 h 00 min more if all users leave, 2 h 30 min if they stay" in text
    assert "80.0 ms now" in text
    assert not list(said.of(after(55)))


@pytest.mark.parametrize(
    ("first", "follows"), [(DEADLINE, "The deadline is kept"), (CEILING, "The ceiling is kept")]
)
def test_what_excludes_each_other_is_said_once_with_what_follows(first: str, follows: str) -> None:
    said = news(Goals(50e6, within_s=3600, first=first), known=some_forecast())
    bad = after(40, impossible=True, needed_kib=90_000.0, finish_s=QUIET.time_s + 3600)
    text = "".join(said.conflict(bad))
    assert "cannot be over by 13:00 with a p99 under 50.0 ms" in text
    assert "92.2 MB/s of each member" in text
    assert follows in text
    assert not list(said.conflict(bad))


def test_a_date_says_once_what_it_needs_and_what_that_costs() -> None:
    said = news(Goals(within_s=86_400), known=some_forecast())
    assert not list(said.of(after(0)))
    (text,) = said.of(after(5, needed_kib=40_000.0, finish_s=QUIET.time_s + 86_400))
    assert "To be over by Tue 12:00, the recovery of /dev/md0 needs 41.0 MB/s" in text
    assert "with a p99 of" in text
    assert not list(said.of(after(10, needed_kib=41_000.0)))


def test_a_date_that_nobody_named_says_how_to_name_one() -> None:
    goals = Goals(50e6)
    said = News(ARRAY, "recover", goals, goals.promise("recover", NOW, math.inf), None)
    week = QUIET.time_s + 7 * 86_400
    (text,) = said.of(after(5, needed_kib=26_000.0, finish_s=week))
    assert text.startswith("By default: to be over by ")
    assert "needs 26.6 MB/s of each member. --finish-within, or guard_finish_within" in text
    conflict = "".join(
        said.conflict(after(60, impossible=True, needed_kib=26_000.0, finish_s=week))
    )
    assert "with a p99 under 50.0 ms: at the 26.6 MB/s" in conflict
    assert "The deadline is kept. --finish-within, or guard_finish_within" in conflict


def test_a_lost_date_says_when_full_speed_ends() -> None:
    said = news(Goals(within_s=600))
    text = "".join(said.conflict(after(10, impossible=True, finish_s=QUIET.time_s + 600)))
    assert "cannot be over by 12:10: at full speed it takes 1 h 00 min more" in text
    assert "--if-impossible" not in text


def test_a_log_hears_of_each_quarter() -> None:
    said = news(Goals(50e6))
    texts = [t for share in range(10, 100, 5) for t in said.of(after(share, share=share / 100))]
    assert [text.split(" is ")[1][:3] for text in texts] == ["25%", "50%", "75%"]


def test_what_is_sure_to_a_second_has_no_interval() -> None:
    sure = {"left_s": 24.2, "left_low_s": 23.9, "left_high_s": 24.4}
    said = news(Goals(policy="balanced"))
    assert not list(said.of(after(0)))
    quarter, cost = said.of(after(50, share=0.5, **sure))
    assert quarter == "The recovery of /dev/md0 is 50% done; 24 s are left."
    assert "will take 24 s more; the p99 is 80.0 ms now" in cost


def test_the_curve_of_a_raid10_check_is_that_of_its_addresses(tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path).put("sys/block/md0/md/component_size", "2000")
    array = dataclasses.replace(find_array("md0", tmp_path), level="raid10", size_bytes=4_096_000)
    known = dataclasses.replace(some_forecast(), level="raid10", member_kib=2000)
    member, address = (curve(array, action, known) for action in ("recover", "check"))
    assert address.at(0.5) == pytest.approx(2 * member.at(0.5))


@pytest.mark.parametrize(("policy", "times"), [("rebuild", 1.0), ("balanced", 2.5)])
def test_what_a_policy_costs_is_reckoned_under_mds_own_limit(policy: str, times: float) -> None:
    known, limit_kib = some_forecast(), 50_000
    (text,) = news(Goals(policy=policy), known=known, limit_kib=limit_kib).before()
    low, high = known.time("rebuild", limit_kib / times).interval
    assert f"takes {show_ends(show_seconds(low), show_seconds(high))} while" in text


def test_a_deadline_that_mds_own_limit_does_not_allow_names_that() -> None:
    said = news(Goals(within_s=600), limit_kib=40_000)
    text = "".join(said.conflict(after(10, impossible=True)))
    assert "sync_speed_max does not let it go faster than 41.0 MB/s" in text
    assert text.endswith("It goes at full speed.")


def test_what_a_resync_costs_under_the_ceiling_is_not_that_of_a_rebuild() -> None:
    known = dataclasses.replace(some_forecast(), level="raid10")
    told = {}
    for action in ("resync", "recover"):
        said = news(Goals(50e6, within_s=3600), action, known)
        text = "".join(said.conflict(after(40, impossible=True, needed_kib=90_000.0)))
        told[action] = text.partition("Under the ceiling it would take about ")[2]
    assert told["resync"] != told["recover"]


def test_a_speed_of_which_the_forecast_saw_only_the_ceiling_says_so() -> None:
    known = dataclasses.replace(some_forecast(), stopped_ns=45e6)
    (text,) = news(Goals(within_s=86_400), known=known).of(after(5, needed_kib=180_000.0))
    assert "with a p99 above 45.0 ms, by the forecast" in text
