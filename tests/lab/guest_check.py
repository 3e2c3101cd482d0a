"""Checks of a real array, in parts; `test_run.py` runs this in check.toml, in this order."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from checked import (
    MD,
    MEMBERS,
    SLACK_SECTORS,
    document,
    ended,
    mend,
    newest,
    plant,
    position,
    sectors_read,
    settings,
    size,
    start,
    start_on,
    wait_for,
)
from guest import autotune, autotune_json, read, running, signal_guardians, wait_until
from guest import start as start_autotune
from screen import Terminal

from autotune.checking import bounded_check, obstacles, stored
from autotune.checking import check as check_module
from autotune.checking.check import check
from autotune.checking.options import WINDOW_CLOSED, CheckOptions
from autotune.checking.record import CheckHistory, CheckRecord, Part
from autotune.guard.goals import Goals
from autotune.service.quiet_time import QuietHours
from autotune.system.array import find_array

WINDOW_S = 24.0
CLOSING_S = 8.0


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def planted() -> Iterator[None]:
    """A stripe that differs, at nine tenths of the array."""
    place = size() // 10 * 9 // 8 * 8
    plant("vdb", place)
    yield
    mend("vdb", place)


def mdadm(*words: str) -> None:
    subprocess.run(["mdadm", *words], check=True, capture_output=True)


def reboot() -> None:
    """Nothing of the array stays but what is on its disks, nothing of /run."""
    mdadm("--stop", "/dev/md0")
    shutil.rmtree("/run/autotune", ignore_errors=True)
    mdadm("--assemble", "/dev/md0", *(f"/dev/{name}" for name in MEMBERS))


def members() -> list[str]:
    """The disks that are in the array."""
    return sorted(path.name.removeprefix("dev-") for path in MD.glob("dev-*"))


def closing_in(seconds: float) -> Callable[[], datetime]:
    """A clock by which the hour from midnight to one is over so soon."""
    began, first = time.monotonic(), datetime(2026, 1, 1, 1) - timedelta(seconds=seconds)
    return lambda: first + timedelta(seconds=time.monotonic() - began)


def within(state: Path, seconds: float) -> tuple[CheckRecord | None, str, list[CheckRecord]]:
    """A check as the timer does it, in a window that closes so soon."""
    told: list[CheckRecord] = []
    wanted = CheckOptions(
        goals=Goals(policy="foreground"),
        state_dir=state,
        hottest_c=55,
        on_window=lambda _: None,
        waiting=lambda *_: None,
        notice=print,
        unheld=print,
        mismatched=told.append,
        least_kib=1000,
        window=QuietHours(0, 60),
        patient=True,
        now=closing_in(seconds),
    )
    record, why = check("/dev/md0", wanted)
    return record, why, told


def before_the_end() -> int:
    """The last place at which a check can be stopped."""
    unit = int(read(MD / "chunk_size")) // 512
    return (size() - 1) // unit * unit


def once_each(before: list[int]) -> bool:
    """Whether each member was read once and no more since then."""
    passed = [now - then for now, then in zip(sectors_read(), before, strict=True)]
    print("sectors read of each member:", passed, "of", size())
    return all(size() <= sectors <= size() + SLACK_SECTORS for sectors in passed)


def test_three_windows_and_a_reboot_read_each_stripe_once(
    state: Path, planted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_module, "CLOSING_S", CLOSING_S)
    # Its end has to be reached before the window closes.
    monkeypatch.setattr(bounded_check, "LEAD_S", CLOSING_S / 4)
    monkeypatch.setattr(bounded_check, "FIRST_SECTORS", bounded_check.LEAST_SECTORS)
    found, before = settings(), sectors_read()
    shares = []
    for number in range(3):
        record, why, told = within(state, WINDOW_S if number < 2 else 3000)
        assert record is not None
        assert settings() == found
        assert not list((state / "journal").glob("*"))
        assert [part.ended for part in record.parts[:2]] == [WINDOW_CLOSED] * min(number + 1, 2)
        shares.append(record.share)
        if number < 2:
            assert why == WINDOW_CLOSED
            assert not told
            reboot()
            found = settings()
    assert why == ""
    assert record.ended is not None
    assert 0 < shares[0] < shares[1] < shares[2] == 1
    assert (record.pieces, record.position, record.mismatches) == (3, size(), 8)
    assert [each.mismatches for each in told] == [8]
    assert once_each(before)


@pytest.mark.slow
def test_a_check_that_is_not_due_and_one_outside_its_window(state: Path, tmp_path: Path) -> None:
    if not autotune_json("history", "--checks", state=state):
        assert autotune("check", "/dev/md0", state=state).returncode == 0
    config = tmp_path / "config.toml"
    config.write_text("[defaults]\ncheck_every = '30d'\n")
    before = sectors_read()
    done = autotune("check", "/dev/md0", "--scheduled", "--config", config, state=state)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the next one is due on" in done.stdout
    hour = datetime.now().hour
    shut = f"{(hour + 4) % 24:02d}:00-{(hour + 5) % 24:02d}:00"
    config.write_text(f"[defaults]\ncheck_every = '1s'\nwindow = '{shut}'\n")
    time.sleep(1)
    done = autotune("check", "/dev/md0", "--scheduled", "--config", config, state=state)
    assert done.returncode == 0, done.stderr
    assert "has not begun: it is outside its window" in done.stdout
    config.write_text("")
    done = autotune("check", "/dev/md0", "--scheduled", "--config", config, state=state)
    assert done.returncode == 2
    assert "set check_every" in done.stderr
    assert sectors_read() == before


@pytest.mark.slow
def test_after_ctrl_c_it_goes_on_and_reads_nothing_twice(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, before, output = settings(), sectors_read(), tmp_path / "output"
    child = start(state, output)
    wait_until(lambda: position(state) > size() // 8, 120, "an eighth")
    refused = autotune("check", "/dev/md0", state=state)
    assert refused.returncode == 1
    assert "Another run of autotune works on /dev/md0" in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr
    os.kill(child, signal.SIGINT)
    assert ended(child) == 0, output.read_text()
    said = document(output)
    assert (said["complete"], said["stopped"]) == (False, "Ctrl-C")
    assert said["position_sectors"] == position(state) > 0
    assert settings() == found
    # As a plain `su` has it: without the folders of mdadm.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    said = autotune_json("check", "/dev/md0", state=state)
    assert (said["complete"], said["pieces"], said["mismatch_sectors"]) == (True, 2, 0)
    assert once_each(before)
    assert settings() == found
    past = autotune_json("history", "--checks", state=state)
    assert past[0]["mismatch_sectors"] == 0
    (report,) = autotune_json("report", "/dev/md0", state=state)
    assert report["checks"] == past
    assert "complete" in autotune("history", "--checks", state=state).stdout


@pytest.mark.slow
def test_a_ctrl_c_just_before_the_end_lets_it_come_to_it(tmp_path: Path) -> None:
    found, output = settings(), tmp_path / "output"
    child = start(tmp_path, output)
    wait_until(lambda: read(MD / "sync_max") == str(before_the_end()), 180, "the last part")
    os.kill(child, signal.SIGINT)
    assert ended(child) == 0, output.read_text()
    said = document(output)
    assert (said["complete"], said["stopped"]) == (True, "")
    assert settings() == found


@pytest.mark.slow
@pytest.mark.parametrize("left", ["a chunk", "a page", "nothing"])
def test_one_that_was_stopped_just_before_its_end_comes_to_it(tmp_path: Path, left: str) -> None:
    """md reads that little before anybody sees it under way."""
    found, array, now = settings(), find_array("/dev/md0"), datetime.now(UTC)
    at = {"a chunk": before_the_end(), "a page": size() - 8, "nothing": size()}[left]
    record = CheckRecord(
        began=now,
        array=obstacles.shape(array),
        members=obstacles.members(array),
        size=size(),
        parts=(Part(start=0, end=at, began=now),),
    )
    path = stored.path_of(tmp_path, array.uuid)
    stored.save(CheckHistory(device="/dev/md0", checks=(record,)), path)
    said = autotune_json("check", "/dev/md0", state=tmp_path)
    assert (said["complete"], said["position_sectors"]) == (True, size())
    assert newest(tmp_path).began == now
    assert settings() == found


@pytest.mark.slow
def test_a_terminal_shows_it_and_keeps_its_end(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    with Terminal(40, 15) as terminal:
        child = start_on(terminal.below, state, "--p99-ceiling", "80ms")
        wait_until(lambda: "% is checked" in terminal.text(), 120, "a drawing")
        labels = [line[:5].strip() for line in terminal.lines() if line.strip()]
        assert {"p99", "sync", "left"} <= set(labels), labels
        assert "Ctrl-C stops it" in terminal.text()
        os.kill(child, signal.SIGINT)
        assert ended(child) == 0, terminal.lines()
        text = terminal.text()
    assert "The check of /dev/md0 is paused at" in text
    assert "Ctrl-C stops it;" not in text


@pytest.mark.slow
def test_a_warm_disk_is_waited_for(tmp_path: Path) -> None:
    found, output, sensor = settings(), tmp_path / "output", tmp_path / "sensor"
    sensor.write_text("40")
    child = start(tmp_path, output, sensor=sensor)
    wait_until(lambda: read(MD / "sync_action") == "check", 60, "the check")
    sensor.write_text("56")
    wait_for("has 56 °C", output)
    assert settings() == found
    sensor.write_text("54")
    time.sleep(3)
    assert read(MD / "sync_action") == "idle"
    sensor.write_text("50")
    wait_until(lambda: read(MD / "sync_action") == "check", 60, "the check again")
    assert "goes on at" in output.read_text()
    os.kill(child, signal.SIGTERM)
    assert ended(child) == 0, output.read_text()
    assert newest(tmp_path).pieces == 2
    assert settings() == found


@pytest.mark.slow
def test_whoever_ends_the_check_or_sets_a_limit_is_not_fought(state: Path, tmp_path: Path) -> None:
    found, output = settings(), tmp_path / "output"
    child = start(state, output)
    # Before its thread is there, the kernel forgets an "idle".
    wait_until(lambda: "check =" in read(Path("/proc/mdstat")), 60, "the check")
    (MD / "sync_action").write_text("idle")
    assert ended(child) == 1
    assert "somebody else ended the check" in output.read_text()
    assert settings() == found
    child = start(state, output)
    wait_until(lambda: read(MD / "sync_action") == "check", 60, "the check")
    time.sleep(2)
    (MD / "sync_speed_max").write_text("60000")
    assert ended(child) == 1
    assert "somebody else set sync_speed_max" in output.read_text()
    assert read(MD / "sync_speed_max") == "60000 (local)"
    (MD / "sync_speed_max").write_text("system")
    assert settings() == found


@pytest.mark.slow
def test_a_recovery_goes_first_and_a_new_member_is_read_too(state: Path, tmp_path: Path) -> None:
    found, output = settings(), tmp_path / "output"
    mdadm("/dev/md0", "--add", "/dev/vdd")
    earlier = newest(state).began
    child = start(state, output, "--restart")
    wait_until(lambda: newest(state).began != earlier, 90, "a new check")
    wait_until(lambda: position(state) > 0, 90, "some way")
    mdadm("/dev/md0", "--fail", "/dev/vdc")
    wait_until(lambda: read(MD / "sync_action") == "recover", 60, "the recovery")
    wait_for("waits: a recovery of it is under way", output)
    assert (read(MD / "sync_max"), read(MD / "sync_speed_max")) == ("max", "200000 (system)")
    wait_until(lambda: read(MD / "degraded") == "0", 300, "the recovery's end")
    wait_for("so it begins anew", output)
    wait_until(lambda: read(MD / "sync_action") == "check", 60, "the check again")
    os.kill(child, signal.SIGINT)
    assert ended(child) == 0, output.read_text()
    assert newest(state).parts[0].start == 0
    mdadm("/dev/md0", "--remove", "/dev/vdc")
    assert settings() == found


@pytest.mark.slow
def test_a_replacement_goes_first(state: Path, tmp_path: Path) -> None:
    output, old = tmp_path / "output", members()[-1]
    new = next(name for name in (*MEMBERS, "vdd") if name not in members())
    mdadm("/dev/md0", "--add", f"/dev/{new}")
    found = settings()
    child = start(state, output)
    wait_until(lambda: "check =" in read(Path("/proc/mdstat")), 60, "the check")
    mdadm("/dev/md0", "--replace", f"/dev/{old}")
    wait_until(lambda: read(MD / "sync_action") == "recover", 60, "the replacement")
    wait_for("waits: a recovery of it is under way", output)
    assert (read(MD / "sync_max"), read(MD / "sync_speed_max")) == ("max", "200000 (system)")
    assert read(MD / "degraded") == "0"
    wait_for("so it begins anew", output, 300)
    wait_until(lambda: read(MD / "sync_action") == "check", 60, "the check again")
    assert "faulty" in read(MD / f"dev-{old}/state")
    os.kill(child, signal.SIGINT)
    assert ended(child) == 0, output.read_text()
    mdadm("/dev/md0", "--remove", f"/dev/{old}")
    assert settings() == found


@pytest.mark.slow
def test_a_reshape_of_the_layout_alone_begins_it_anew(state: Path, tmp_path: Path) -> None:
    earlier = newest(state).began if stored.by_uuid(state) else None
    child = start(state, tmp_path / "first", "--restart")
    wait_until(lambda: position(state) > 0 and newest(state).began != earlier, 90, "some way")
    os.kill(child, signal.SIGINT)
    assert ended(child) == 0
    began, layout = newest(state).began, read(MD / "layout")
    mdadm("--grow", "/dev/md0", "--layout=right-asymmetric", f"--backup-file={tmp_path}/backup")
    wait_until(lambda: read(MD / "layout") != layout, 60, "the reshape")
    wait_until(lambda: read(MD / "reshape_position") == "none", 600, "its end")
    # mdadm writes one more bound some seconds later, which stays (MD_FACTS §4).
    wait_until(lambda: not any(running("mdadm")), 60, "mdadm's end")
    (MD / "sync_max").write_text("max")
    output = tmp_path / "second"
    child = start(state, output)
    wait_for("or the array reshaped, so it begins anew", output)
    wait_until(lambda: newest(state).began != began, 90, "a new check")
    os.kill(child, signal.SIGINT)
    assert ended(child) == 0, output.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("who", ["restore", "guard"])
@pytest.mark.parametrize("earlier", ["max", "32768"])
def test_no_rebuild_stands_at_the_bound_of_a_check_that_was_killed_with_its_guardian(
    tmp_path: Path, who: str, earlier: str
) -> None:
    """The timer comes to it, and a guard that waits at once. mdadm may have left a bound, too,
    which goes with the rebuild."""
    (MD / "sync_max").write_text(earlier)
    found, old = settings(), members()[-1]
    new = next(name for name in (*MEMBERS, "vdd") if name not in members())
    child = start(tmp_path, tmp_path / "output", "--restart")
    wait_until(lambda: "check =" in read(Path("/proc/mdstat")), 60, "the check")
    wait_until(lambda: read(MD / "sync_max") != "max", 60, "its bound")
    words = ("guard", "/dev/md0", "--wait", "--policy", "rebuild")
    guard = start_autotune(*words, state=tmp_path) if who == "guard" else None
    time.sleep(5 if guard else 0)
    assert autotune("restore", "--abandoned", state=tmp_path).returncode == 0
    assert read(MD / "sync_action") == "check"
    assert read(MD / "sync_max") != "max"
    signal_guardians()
    os.kill(child, signal.SIGKILL)
    ended(child)
    try:
        if guard is None:
            bound = read(MD / "sync_max")
            mdadm("/dev/md0", "--add", f"/dev/{new}")
            mdadm("/dev/md0", "--fail", f"/dev/{old}")
            wait_until(lambda: read(MD / "sync_action") == "recover", 60, "the recovery")
            assert read(MD / "sync_max") == bound
            assert autotune("restore", "--abandoned", state=tmp_path).returncode == 0
            wait_until(lambda: read(MD / "degraded") == "0", 300, "the recovery's end")
            mdadm("/dev/md0", "--remove", f"/dev/{old}")
            found[str(MD / "sync_max")] = "max"
        wait_until(lambda: settings() == found, 60, "what was found")
        assert not list((tmp_path / "journal").glob(f"*{'.waiting' if guard else ''}.jsonl"))
    finally:
        (MD / "sync_max").write_text("max")
        if guard is not None:
            guard.terminate()
            assert guard.wait(60) == 0


def test_a_degraded_array_is_not_checked(state: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    child = start(state, output)
    wait_until(lambda: read(MD / "sync_action") == "check", 60, "the check")
    mdadm("/dev/md0", "--fail", f"/dev/{members()[-1]}")
    assert ended(child) == 1
    assert "is degraded" in output.read_text()
    assert not newest(state).ended
    refused = autotune("check", "/dev/md0", state=state)
    assert refused.returncode == 1
    assert "is degraded" in refused.stderr
    assert (read(MD / "sync_min"), read(MD / "sync_max")) == ("0", "max")
    assert not running("fio")
