"""What is kept of a guarded sync: little, whole, and no more than so many."""

import json
import os
from pathlib import Path

import fake_sysfs
import pytest
from some_windows import FIRST, MS, WINDOW_S, some_windows

from autotune.guard import stored
from autotune.guard.guarded_sync import GAP_S, MOST_POINTS, NAMES, GuardedSync, Recording
from autotune.guard.session import Summary
from autotune.guard.stored import Recorder
from autotune.system.array import find_array

SUMMARY = Summary("recovery", 300.0, 1 << 30, 60, 55, 5, "the recovery is over", False)


def recorded(count: int, **changes: object) -> GuardedSync:
    recording = Recording("/dev/md0", "ab", 80 * MS, None)
    for window in some_windows(count, **changes):
        recording.add(window)
    found = recording.so_far(SUMMARY)
    assert found is not None
    return found


@pytest.mark.parametrize("count", [1, 7, MOST_POINTS - 1, MOST_POINTS, 5000])
def test_points_are_few_and_stand_for_all_windows(count: int) -> None:
    sync, rates = recorded(count), []
    assert len(sync.points) < MOST_POINTS
    assert count < 3 or len(sync.points) >= min(count, MOST_POINTS // 2)
    assert sync.points[-1].seconds == WINDOW_S * (count - 1)
    assert max(p.worst_p99_ns or 0 for p in sync.points) == (40 + 5 * min(count - 1, 9)) * MS
    rates = [point.sync_bytes_per_s for point in sync.points]
    assert rates == pytest.approx([FIRST.sync_bytes_per_s] * len(rates))
    assert [p.seconds for p in sync.points] == sorted(p.seconds for p in sync.points)


def test_means_are_of_all_windows_that_have_one() -> None:
    recording = Recording("/dev/md0", "ab", None, "balanced")
    for number, window in enumerate(some_windows(MOST_POINTS, p99_ns=None, source="none")):
        recording.add(window)
        assert (recording.so_far() is None) == (number < 0)
    for window in some_windows(MOST_POINTS, time_s=FIRST.time_s + 9e3, p99_ns=70 * MS):
        recording.add(window)
    sync = recording.so_far()
    assert sync is not None
    assert sync.points[0].p99_ns is sync.points[0].held_bytes_per_s is None
    assert sync.points[-1].p99_ns == pytest.approx(70 * MS)
    assert sync.points[-1].held_bytes_per_s == FIRST.sync_speed_max_kib * 1024


def test_what_is_read_is_what_was_kept_and_it_is_small(tmp_path: Path) -> None:
    sync = recorded(5000)
    stored.keep(sync, tmp_path)
    assert stored.every(tmp_path) == [sync]
    (file,) = (tmp_path / "guarded").iterdir()
    assert file.stat().st_size < 64 * 1024


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("began_s", 10**400),
        ("ceiling_ns", 10**400),
        ("finish_s", float("inf")),
        ("points", {name: [10**400] for name in NAMES}),
    ],
    ids=["began_s", "ceiling_ns", "finish_s", "points"],
)
def test_a_number_that_is_none_of_ours_is_damage(tmp_path: Path, key: str, value: object) -> None:
    stored.keep(recorded(3), tmp_path)
    (file,) = (tmp_path / "guarded").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    assert stored.every(tmp_path) == []
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_newest_are_kept_and_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    for number in range(stored.KEPT + 5):
        stored.keep(recorded(3, time_s=FIRST.time_s + 1000 * number), tmp_path)
    found = stored.every(tmp_path)
    assert len(found) == stored.KEPT
    assert found[0].began_s == FIRST.time_s + 1000 * (stored.KEPT + 4)
    files = sorted((tmp_path / "guarded").iterdir())
    whole = json.loads(files[0].read_text())
    for number, text in enumerate(
        ("", "[]", "{}", json.dumps({**whole, "points": {}}), json.dumps({**whole, "x": 1}),
         json.dumps({**whole, "began_s": "soon"}), json.dumps({**whole, "summary": {"a": 1}}),
         json.dumps({**whole, "points": {name: [] for name in whole["points"]}}),
         json.dumps({**whole, "points": {**whole["points"], "share": [None] * 3}}))
    ):  # fmt: skip
        files[number].write_text(text)
    assert len(stored.every(tmp_path)) == stored.KEPT - 9


def test_a_clock_that_was_set_back_lets_the_oldest_be_forgotten_and_not_what_is_written(
    tmp_path: Path,
) -> None:
    ahead = [recorded(3, time_s=6e9 + 1000 * number) for number in range(stored.KEPT)]
    for sync in ahead:
        stored.keep(sync, tmp_path)
        path = tmp_path / "guarded" / f"{sync.uuid}-{sync.began_s:.0f}.json"
        os.utime(path, (sync.began_s, sync.began_s))
    now = [recorded(3, time_s=time_s) for time_s in (5000.0, 4000.0)]
    for sync in now:
        stored.keep(sync, tmp_path)
    assert stored.every(tmp_path) == [*reversed(ahead[2:]), *now]


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    fake_sysfs.raid6(tmp_path)
    array = find_array("md0", tmp_path)
    return Recorder(tmp_path / "state", array, 80 * MS, None, pytest.fail)


def test_each_sync_is_one_and_a_guard_that_is_cut_leaves_what_it_saw(
    recorder: Recorder, tmp_path: Path
) -> None:
    first = list(some_windows(61))
    for window in first[:60]:
        recorder.window(window)
    assert not (tmp_path / "state").exists()
    recorder.window(first[60])
    # As if it were killed here.
    (cut,) = stored.every(tmp_path / "state")
    assert cut.summary is None
    assert len(cut.points) == 61
    recorder.over(SUMMARY)
    (whole,) = stored.every(tmp_path / "state")
    assert whole.summary == SUMMARY
    for window in some_windows(3, time_s=FIRST.time_s + 1e4):
        recorder.window(window)
    recorder.window(next(some_windows(1, time_s=FIRST.time_s + 1e4 + 2 * GAP_S)))
    recorder.cut()
    found = stored.every(tmp_path / "state")
    assert [len(sync.points) for sync in found] == [1, 3, 61]
    assert [sync.summary for sync in found] == [None, None, SUMMARY]


def test_a_disk_that_takes_nothing_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    fake_sysfs.raid6(tmp_path)
    told: list[str] = []
    array = find_array("md0", tmp_path)
    recorder = Recorder(tmp_path / "state", array, 80 * MS, None, told.append)
    for number in (0, 1):
        for window in some_windows(5, time_s=FIRST.time_s + 1e4 * number):
            recorder.window(window)
        recorder.over(SUMMARY)
    assert len(told) == 1
    assert "cannot be kept" in told[0]
    # With room again, the next one is kept.
    (tmp_path / "state").unlink()
    for window in some_windows(5, time_s=FIRST.time_s + 3e4):
        recorder.window(window)
    recorder.over(SUMMARY)
    assert len(stored.every(tmp_path / "state")) == 1
