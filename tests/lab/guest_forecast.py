"""A forecast of a real array with a foreground, and of a sync under way; `test_run.py` runs this in
forecast.toml, in this order."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import autotune, autotune_json, knob_files, read, running, start, wait_until

from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.workload import Probe
from autotune.system.array import find_array

MD = Path("/sys/block/md0/md")
START_RO = Path("/sys/module/md_mod/parameters/start_ro")
IOPS = 15
SECTORS_WRITTEN = 6
"""In /sys/block/NAME/stat (kernel Documentation/block/stat.rst)."""
OUTER_KIB_S = 16e6 / 1024


@contextlib.contextmanager
def foreground() -> Iterator[None]:
    """Reads at a fixed rate."""
    array = find_array("/dev/md0")
    job = Job("load", Probe(rate_iops=IOPS), Target(Path(array.device), array.size_bytes))
    with Fio([job], 600, seed=3):
        yield


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


def written(name: str) -> str:
    return read(Path("/sys/block") / name / "stat").split()[SECTORS_WRITTEN]


def mdadm(*words: str) -> None:
    subprocess.run(["mdadm", *words], check=True, capture_output=True)


def test_a_ceiling_that_is_passed_without_a_sync_ends_it(state: Path) -> None:
    found = knob_files()
    with foreground():
        words = ("forecast", "/dev/md0", "--time", "3min", "--p99-ceiling", "200us")
        done = autotune(*words, state=state)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "above the ceiling without any sync" in done.stderr
    assert knob_files() == found


def test_a_kill_leaves_the_settings_as_found(state: Path) -> None:
    found = knob_files()
    child = start("forecast", "/dev/md0", "--time", "3min", state=state)
    wait_until(lambda: read(MD / "sync_action") == "check", 120, "the check")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    wait_until(lambda: knob_files() == found, 60, "the guardian")
    wait_until(lambda: not list((state / "journal").glob("*")), 60, "the journal")


@pytest.mark.slow
def test_it_writes_nothing_and_leaves_all_as_it_was(state: Path) -> None:
    found, before = knob_files(), written("md0")
    with foreground():
        words = ("forecast", "/dev/md0", "--time", "3min", "--finish-within", "10min")
        said = autotune_json(*words, state=state)
    assert knob_files() == found
    assert written("md0") == before
    assert not running("fio")
    assert not list((state / "journal").glob("*"))
    assert said["busy"]
    assert said["places_measured"]
    speeds = [row["kib_s"] for row in said["speeds"]]
    assert len(speeds) == 5
    assert speeds == sorted(speeds)
    assert said["full_kib_s"] < OUTER_KIB_S
    # The disks are half as fast at their end.
    (_, first), *_, (_, last) = said["places"]
    assert last < 0.85 * first
    for row in said["speeds"]:
        times = row["seconds"]["rebuild"]
        assert times["low"] < times["value"] < times["high"]
    assert said["within"]["needed"]["kib_s"] < speeds[-1]
    (kept,) = autotune_json("history", "--forecasts", state=state)
    assert kept["speeds"] == said["speeds"]
    assert "/dev/md0" in autotune("history", "--forecasts", state=state).stdout


@pytest.mark.slow
def test_it_warns_and_says_what_ended_it(state: Path) -> None:
    """An array that nobody has written to since its assembly; and one that is stopped."""
    members = [f"/dev/{name}" for name in find_array("/dev/md0").disks]
    START_RO.write_text("1")
    mdadm("--stop", "/dev/md0")
    mdadm("--assemble", "/dev/md0", *members)
    START_RO.write_text("0")
    assert read(MD / "array_state") == "read-auto"
    child = start("forecast", "/dev/md0", "--time", "3min", state=state)
    wait_until(lambda: read(MD / "sync_action") == "check", 120, "the check")
    wait_until(lambda: not subprocess.call(["mdadm", "--stop", "/dev/md0"]), 60)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 1
    assert "/dev/md0 is auto-read-only" in said
    assert "/dev/md0 was stopped" in said
    assert "No such file" not in said
    mdadm("--assemble", "/dev/md0", *members)


@pytest.mark.slow
def test_somebody_elses_check_after_ours_goes_on(state: Path) -> None:
    """As cron's checkarray starts one, in the moment after ours was ended."""

    def theirs_started() -> bool:
        try:
            (MD / "sync_action").write_text("check")
        except OSError:
            return False
        return True

    child = start("forecast", "/dev/md0", "--time", "3min", state=state)
    wait_until(lambda: read(MD / "sync_action") == "check", 120, "the check")
    wait_until(lambda: read(MD / "sync_completed").split()[0] not in ("none", "0"), 60, "progress")
    (MD / "sync_action").write_text("idle")
    wait_until(theirs_started, 20, "theirs")
    _, said = child.communicate(timeout=120)
    assert child.returncode == 1
    assert "somebody else" in said
    assert read(MD / "sync_action") == "check"
    (MD / "sync_action").write_text("idle")


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_check_that_ends_while_it_is_watched_has_ended(state: Path, interrupted: bool) -> None:
    wait_until(lambda: read(MD / "sync_action") == "idle", what="idle")
    left_kib = 25 * 4000 * (10 if interrupted else 1)
    size_kib = int(read(MD / "component_size"))
    (MD / "sync_speed_max").write_text("4000")
    (MD / "sync_min").write_text(str(max(0, size_kib - left_kib) // 4 * 8))
    (MD / "sync_action").write_text("check")
    if interrupted:
        subprocess.Popen(["sh", "-c", f"sleep 20; echo idle > {MD}/sync_action"])
    said = autotune_json("forecast", "/dev/md0", state=state)
    (MD / "sync_min").write_text("0")
    (MD / "sync_speed_max").write_text("system")
    assert (said["kind"], said["action"]) == ("ended", "check")
    assert said["interrupted"] == interrupted


@pytest.mark.slow
def test_a_sync_under_way_is_only_watched(state: Path) -> None:
    (MD / "sync_speed_max").write_text("4000")
    for words in (("--fail", "/dev/vdc"), ("--remove", "/dev/vdc")):
        wait_until(lambda: read(MD / "sync_action") == "idle", what="idle")
        mdadm("/dev/md0", *words)
    mdadm("--zero-superblock", "/dev/vdc")
    mdadm("/dev/md0", "--add", "/dev/vdc")
    wait_until(lambda: read(MD / "sync_action") == "recover", what="the recovery")
    found = knob_files()
    said = autotune_json("forecast", "/dev/md0", state=state)
    assert (said["kind"], said["action"]) == ("running", "recover")
    assert 0 < said["share"] < 1
    assert said["low_s"] <= said["left_s"] <= said["high_s"]
    assert knob_files() == found
    text = autotune("forecast", "/dev/md0", state=state).stdout
    assert "The recovery of /dev/md0 is" in text
