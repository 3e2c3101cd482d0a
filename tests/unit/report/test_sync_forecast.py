"""A forecast as people and programs read it."""

import dataclasses
import io
import json
import re
import time

import pytest
from rich.console import Console
from some_forecast import MS, POINTS, some_forecast

from autotune.problem.figure import Estimate
from autotune.report.running_sync import running_document, running_lines
from autotune.report.sync_forecast import (
    print_forecast,
    print_list,
    show_latencies,
    show_times,
)
from autotune.report.sync_forecast_document import document
from autotune.sync_forecast.model import CHECK, REBUILD, Forecast
from autotune.sync_forecast.running import Running

RUNNING = Running("recover", 0.25, 50_000.0, 7200.0, 6000.0, 9000.0, skips=True)


def said(
    forecast: Forecast, width: int = 80, within_s: float | None = None, ceiling: float | None = None
) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_forecast(console, forecast, within_s, ceiling)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def in_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [40, 80])
def test_it_fits_the_terminal(width: int) -> None:
    text = said(some_forecast(), width, 172_800, 40 * MS)
    assert max(map(len, text.splitlines())) <= width
    console = Console(file=io.StringIO(), width=width)
    print_list(console, [some_forecast()])
    assert max(map(len, console.file.getvalue().splitlines())) <= width  # type: ignore[attr-defined]


def test_full_speed_has_one_p99() -> None:
    """That of the sentence is in the table, and its column says what it is of."""
    text = said(some_forecast(), 80)
    heads, last = text[: text.index("10.2 MB/s")], text[text.index("154 MB/s") :].splitlines()[0]
    assert "check takes p99 in a check rebuild takes p99 in a rebuild" in in_one_line(heads)
    (sentence,) = re.findall(r"with a p99 of ([^.]*\.\d to [^.]*)\.", in_one_line(text))
    assert last.rstrip().endswith(f"  {sentence}")
    row = document(some_forecast())["speeds"][-1]
    assert row["expected_p99_ns"] == document(some_forecast())["now"]["p99_ns"]


def test_it_answers_what_was_asked() -> None:
    text = in_one_line(said(some_forecast(), 80, 259_200, 40 * MS))
    assert "Without a sync your p99 is" in text
    assert "To be done within 3 days a rebuild needs" in text
    assert "Under 40.0 ms a rebuild can go at about" in text
    assert "best ratio of speed to p99 was at 81.9 MB/s" in text


def test_what_cannot_be_is_said_with_what_can() -> None:
    text = in_one_line(said(some_forecast(), 80, 3600, 1 * MS))
    assert "A rebuild cannot be done within 1 h 00 min: at full speed it takes 36 h" in text
    assert "No speed is known to keep the p99 under 1.0 ms" in text


def test_a_low_limit_is_what_a_sync_gets_now() -> None:
    text = in_one_line(said(some_forecast(limit_kib_s=10_000)))
    assert "sync_speed_max (10000 KiB/s) a sync goes at 10.2 MB/s of each member" in text


def test_what_is_not_known_is_said() -> None:
    odd = dataclasses.replace(
        some_forecast(POINTS[:3]),
        busy=False,
        places_measured=False,
        stopped_ns=40 * MS,
    )
    text = in_one_line(said(odd))
    assert "Nobody used the array" in text
    assert "half is assumed" in text
    assert "tried for longer than some seconds: the p99 was above 40.0 ms" in text
    flash = in_one_line(said(dataclasses.replace(odd, media="ssd")))
    assert "half is assumed" not in flash
    assert "a small SSD" in flash


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(50 * MS, 0.0), "50.0 ms"),
        (Estimate(700 * MS, 0.2), "437 ms to 1.1 s"),
    ],
)
def test_ranges_of_latencies(estimate: Estimate, shown: str) -> None:
    assert show_latencies(estimate) == shown


def test_ranges_of_times_have_one_unit() -> None:
    assert show_times(Estimate(36_000, 0.0)) == "10 h"
    assert show_times(Estimate(90, 0.0)) == "90 s"
    assert show_times(Estimate(1_000_000, 0.0)) == "12 days"


def test_programs_get_each_figure_with_its_interval() -> None:
    found = json.loads(json.dumps(document(some_forecast(), 259_200, 40 * MS)))
    assert [row["kib_s"] for row in found["speeds"][:-1]] == [10_000, 40_000, 80_000]
    assert found["speeds"][-1]["kib_s"] == pytest.approx(some_forecast().full_kib_s)
    for row in found["speeds"]:
        assert row["seconds"]["rebuild"]["low"] < row["seconds"]["rebuild"]["high"]
        assert row["p99_ns"]["low"] < row["p99_ns"]["value"] < row["p99_ns"]["high"]
    assert found["within"]["needed"]["kib_s"] > 0
    assert found["under"]["needed"]["p99_ns"]["rebuild"]["value"] == pytest.approx(
        40 * MS, rel=0.01
    )
    assert document(some_forecast(), 3600)["within"]["needed"] is None
    assert document(some_forecast())["within"] is None


def test_a_sync_under_way_has_an_end_with_an_interval() -> None:
    first, second = running_lines("/dev/md0", RUNNING)
    assert "The recovery of /dev/md0 is 25.0% done, at 51.2 MB/s of each member" in first
    assert "2 h 00 min more (1 h 40 min to 2 h 30 min)" in first
    assert "bitmap" in second
    assert len(list(running_lines("/dev/md0", dataclasses.replace(RUNNING, action="check")))) == 1
    assert running_document("/dev/md0", RUNNING)["high_s"] == 9000


@pytest.mark.parametrize("now_s", [1.8e9, 1.8e9 - 0.3])
def test_what_is_sure_to_a_second_has_no_interval(
    monkeypatch: pytest.MonkeyPatch, now_s: float
) -> None:
    """Not even where a minute ends within it."""
    monkeypatch.setattr(time, "time", lambda: now_s)
    sure = dataclasses.replace(RUNNING, action="check", left_s=0.3, low_s=0.2, high_s=0.4)
    (text,) = running_lines("/dev/md0", sure)
    assert re.search(r"It will take 0 s more: until \d\d:\d\d, if the load", text)


@pytest.mark.parametrize(("within_s", "says"), [(9000, "will"), (6001, "may"), (5999, "will not")])
def test_whether_a_sync_under_way_will_be_over_in_time(within_s: float, says: str) -> None:
    _, answer, *_ = running_lines("/dev/md0", RUNNING, within_s)
    assert answer.startswith(f"So it {says} be over within ")


def test_a_deadline_that_the_present_limit_does_not_allow_is_said() -> None:
    text = in_one_line(said(some_forecast(limit_kib_s=10_000), within_s=259_200))
    assert "more than the present sync_speed_max (10000 KiB/s) allows" in text


def test_on_raid10_a_check_is_limited_by_the_arrays_addresses() -> None:
    forecast = dataclasses.replace(some_forecast(), level="raid10", counted=2.0, limit_kib_s=80_000)
    assert (forecast.limit(REBUILD), forecast.limit(CHECK)) == (80_000, 40_000)
    now = document(forecast)["now"]["seconds"]
    assert now["check"]["value"] == pytest.approx(2 * now["rebuild"]["value"], rel=0.01)
