"""A guard on a real recovery with a foreground, on raid5-hdd; `test_run.py` runs this there."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from guest import autotune, read, running, signal_guardians, wait_until
from guest_rebuild import DISK, MD, SLOWDOWN, mdadm, recover, settled_knobs
from screen import Terminal

from autotune.cli import guarding
from autotune.cli.main import main
from autotune.guard.session import guard  # noqa: F401 - so that a child need not import it
from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.workload import Probe
from autotune.system.array import find_array

SPEEDS = ("sync_speed_min", "sync_speed_max")
IOPS = 40
LOOK_S = 0.02


class Speeds:
    """Looks at the limits all the while, from a thread of its own."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._done.wait(LOOK_S):
            low, high = (int(read(MD / name).split()[0]) for name in SPEEDS)
            self.seen.add((low, high))

    def __enter__(self) -> "Speeds":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


@contextlib.contextmanager
def foreground() -> Iterator[None]:
    """Reads at a fixed rate."""
    array = find_array("/dev/md0")
    job = Job("load", Probe(rate_iops=IOPS), Target(Path(array.device), array.size_bytes))
    with Fio([job], 600, seed=3):
        yield


def start(state: Path, output: Path, *words: str, device: str = "/dev/md0") -> int:
    """Fork a guard, since the guest takes seconds to start Python; return its process id."""
    with output.open("w") as file:
        return start_on(file.fileno(), state, "--json", *words, device=device)


def start_on(descriptor: int, state: Path, *words: str, device: str = "/dev/md0") -> int:
    """Likewise, with what it says going there."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        # What is asked for its size is the first of them that has one.
        for standard in (0, 1, 2):
            os.dup2(descriptor, standard)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1)
        os.setsid()
        said = ["autotune", "guard", device, "--state-dir", str(state), *words]
        with (
            mock.patch.object(sys, "argv", said),
            mock.patch.object(guarding, "become", guarding.guard),
        ):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def documents(output: Path) -> list[dict[str, Any]]:
    """The lines of JSON that a guard has printed."""
    return [json.loads(line) for line in output.read_text().splitlines() if line[:1] == "{"]


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def recovering() -> None:
    """See that a recovery is under way, be it that of the test before."""
    if read(MD / "sync_action") != "recover":
        recover(slowdown=3)


def is_shut() -> bool:
    return read(MD / "sync_speed_max").endswith("(local)")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_without_a_sync_there_is_nothing_to_guard(state: Path) -> None:
    done = autotune("guard", "/dev/md0", "--p99-ceiling", "50ms", state=state)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No sync runs on /dev/md0" in done.stdout
    assert not (state / "journal").exists()


def test_a_ceiling_has_to_be_one(state: Path) -> None:
    assert autotune("guard", "/dev/md0", state=state).returncode == 2
    assert autotune("guard", "/dev/md0", "--p99-ceiling", "2x", state=state).returncode == 2


@pytest.mark.sample
def test_a_recovery_is_held_and_then_is_as_it_was(state: Path, tmp_path: Path) -> None:
    recovering()
    knobs, output = settled_knobs(), tmp_path / "output"
    with foreground(), Speeds() as speeds:
        child = start(state, output, "--p99-ceiling", "80ms")
        wait_until(lambda: output.read_text().count("window") >= 3, 40, "three windows")
        for words in (("run", "--workload", "rebuild"), ("guard", "--p99-ceiling", "80ms")):
            second = autotune(*words, "/dev/md0", state=state)
            assert (second.returncode, second.stdout) == (1, ""), second.stdout
            assert "Traceback" not in second.stderr
            assert second.stderr.count("\n") <= 3, second.stderr
        os.kill(child, signal.SIGINT)
        assert ended(child) == 0, output.read_text()
    assert settled_knobs() == knobs
    assert not list((state / "journal").glob("*"))
    assert all(low <= high for low, high in speeds.seen)
    assert len({high for _, high in speeds.seen}) == 2
    *windows, summary = map(json.loads, output.read_text().splitlines())
    assert summary["action"] == "recovery"
    assert summary["ended"] == "stopped by Ctrl-C"
    last = windows[-1]
    assert last["source"] in ("accounting", "probe")
    # On a busy machine the probe gets too little done for a p99.
    if last["p99_ns"] is not None:
        assert last["p99_at_least_ns"] <= last["p99_ns"] <= last["p99_at_most_ns"]
    assert last["sync_speed_max_kib"] < 200_000
    # The commands that are refused meanwhile take the guest's one processor for some seconds.
    assert 0.5 * IOPS < max(window["foreground_iops"] for window in windows) < 2 * IOPS
    assert not running("fio")
    (kept,) = json.loads(autotune("report", "/dev/md0", "--json", state=state).stdout)
    (sync,) = kept["syncs"]
    assert {"kind": "summary", **sync["summary"]} == summary
    assert sync["points"]["sync_bytes_per_s"] == [w["sync_bytes_per_s"] for w in windows]


@pytest.mark.sample
def test_a_terminal_shows_it_and_keeps_its_end(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovering()
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    with Terminal(40, 15) as terminal, foreground():
        child = start_on(terminal.below, state, "--p99-ceiling", "80ms")
        wait_until(
            lambda: "left" in (text := terminal.text()) and "ceiling 80.0 ms" in text,
            60,
            "a drawing",
        )
        before, began_s = terminal.sent, time.monotonic()
        time.sleep(10)
        lines = terminal.lines()
        # Each drawing of this size takes some hundred bytes.
        assert terminal.sent - before < 4 * 1500 * (time.monotonic() - began_s)
        assert [line[:4].strip() for line in lines if line.strip()][1:3] == ["p99", "sync"], lines
        os.kill(child, signal.SIGINT)
        assert ended(child) == 0, terminal.lines()
        text = terminal.text()
    assert "Guarded a recovery" in text
    assert "Ctrl-C lets" not in text


@pytest.mark.sample
def test_a_kill_leaves_the_knobs_as_found(state: Path, tmp_path: Path) -> None:
    recovering()
    knobs = settled_knobs()
    with foreground():
        child = start(state, tmp_path / "output", "--p99-ceiling", "80ms")
        wait_until(is_shut, 20, "the guard to work")
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        wait_until(lambda: settled_knobs() == knobs, 20, "the guardian")
        wait_until(lambda: not list((state / "journal").glob("*")), 20, "the journal")


def test_a_guard_puts_back_what_one_left_that_was_killed_with_its_guardian(
    state: Path, tmp_path: Path
) -> None:
    """As `docker kill` does. Its shut throttle would hold the recovery to its end."""
    recovering()
    knobs = settled_knobs()
    with foreground():
        child = start(state, tmp_path / "output", "--p99-ceiling", "80ms")
        wait_until(is_shut, 20, "the guard to work")
        # Else it may see that its guardian is gone, and put all back itself.
        os.kill(child, signal.SIGSTOP)
        signal_guardians()
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
    assert list((state / "journal").glob("*"))
    child = start(state, output := tmp_path / "again", "--p99-ceiling", "80ms")
    wait_until(lambda: "window" in output.read_text(), 40, "a window")
    os.kill(child, signal.SIGTERM)
    assert ended(child) == 0, output.read_text()
    assert "What an earlier run left on /dev/md0 is put back." in output.read_text()
    assert settled_knobs() == knobs
    assert not list((state / "journal").glob("*"))


@pytest.mark.sample
def test_what_makes_no_sense_together_is_said(state: Path) -> None:
    for words in (
        ("--policy", "balanced", "--p99-ceiling", "50ms"),
        ("--policy", "fair"),
        ("--finish-within", "1h", "--finish-by", "06:00"),
        ("--finish-by", "yesterday"),
        ("--if-impossible", "deadline", "--finish-within", "1h"),
    ):
        done = autotune("guard", "/dev/md0", *words, state=state)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_policy_holds_the_sync_and_says_what_that_costs(state: Path, tmp_path: Path) -> None:
    recovering()
    knobs, output = settled_knobs(), tmp_path / "output"
    with foreground():
        child = start(state, output, "--policy", "foreground", "--log-format", "json")
        wait_until(lambda: "Policy foreground" in output.read_text(), 120, "what it costs")
        os.kill(child, signal.SIGINT)
        assert ended(child) == 0, output.read_text()
    assert settled_knobs() == knobs
    assert {"window", "notice", "summary"} == {each["kind"] for each in documents(output)}
    assert len(documents(output)) == output.read_text().count("\n")
    windows = [each for each in documents(output) if each["kind"] == "window"]
    free = max(window["sync_bytes_per_s"] for window in windows)
    assert windows[-1]["sync_bytes_per_s"] < 0.6 * free
    assert windows[-1]["left_low_s"] < windows[-1]["left_high_s"]


def test_a_date_is_met_as_slowly_as_it_allows(state: Path, tmp_path: Path) -> None:
    recovering()
    knobs, output = settled_knobs(), tmp_path / "output"
    with foreground():
        child = start(state, output, "--finish-within", "6min")
        assert ended(child) == 0, output.read_text()
    *windows, summary = documents(output)
    assert summary["ended"] == "the recovery is over"
    assert summary["late_s"] <= 0
    assert summary["seconds"] > 120
    assert any(window["needed_kib"] for window in windows)
    assert not any(window["impossible"] for window in windows[3:])
    assert settled_knobs() == knobs


def test_a_date_that_is_lost_is_said_and_the_sync_runs_freely(state: Path, tmp_path: Path) -> None:
    recovering()
    output = tmp_path / "output"
    with foreground():
        child = start(state, output, "--finish-within", "12s", "--p99-ceiling", "80ms")
        wait_until(lambda: "cannot be over by" in output.read_text(), 90, "that it is lost")
        os.kill(child, signal.SIGINT)
        assert ended(child) == 0, output.read_text()
    assert "The deadline is kept" in output.read_text()


def test_what_somebody_else_sets_is_theirs(state: Path, tmp_path: Path) -> None:
    recovering()
    output = tmp_path / "output"
    with foreground():
        child = start(state, output, "--p99-ceiling", "80ms")
        wait_until(is_shut, 20, "the guard to work")
        (MD / "sync_speed_max").write_text("60000")
        assert ended(child) == 1
    assert "somebody else set sync_speed_max to 60000" in output.read_text()
    assert read(MD / "sync_speed_max") == "60000 (local)"
    (MD / "sync_speed_max").write_text("system")


def test_a_recovery_whose_disk_fails_is_no_success(state: Path, tmp_path: Path) -> None:
    recovering()
    output = tmp_path / "output"
    child = start(state, output, "--p99-ceiling", "80ms", "--finish-within", "24h")
    wait_until(lambda: "window" in output.read_text(), 30, "a window")
    mdadm("/dev/md0", "--fail", DISK)
    assert ended(child) == 1
    (summary,) = (each for each in documents(output) if each.get("kind") == "summary")
    assert (summary["ended"], summary["late_s"]) == ("the recovery was interrupted", None)
    assert "see /proc/mdstat" in output.read_text()


def test_without_a_foreground_the_sync_goes_at_full_speed_to_its_end(
    state: Path, tmp_path: Path
) -> None:
    recovering()
    knobs, output = settled_knobs(), tmp_path / "output"
    child = start(state, output, "--p99-ceiling", "80ms")
    wait_until(lambda: "window" in output.read_text(), 30, "a window")
    assert not is_shut()
    assert json.loads(output.read_text().splitlines()[0])["source"] == "none"
    SLOWDOWN.write_text("0.05\n")
    started = time.monotonic()
    assert ended(child) == 0, output.read_text()
    assert time.monotonic() - started < 60
    assert json.loads(output.read_text().splitlines()[-1])["ended"] == "the recovery is over"
    assert settled_knobs() == knobs
    SLOWDOWN.write_text("1\n")


def test_what_a_bitmap_lets_a_recovery_skip_is_not_synced(state: Path, tmp_path: Path) -> None:
    """Else a guard would shut the throttle for half a minute after each gap."""
    SLOWDOWN.write_text("0.05\n")
    wait_until(lambda: read(MD / "sync_action") == "idle", 60, "the end of any recovery")
    mdadm("--grow", "/dev/md0", "--bitmap=internal", "--bitmap-chunk=4M")
    output, file = tmp_path / "output", Path("/mnt/md0/scattered")
    child = start(state, output, "--wait", "--p99-ceiling", "5s")
    try:
        mdadm("/dev/md0", "--fail", DISK)
        wait_until(lambda: read(MD / "sync_action") == "idle", what="the failure")
        mdadm("/dev/md0", "--remove", DISK)
        with file.open("wb") as scattered:
            os.posix_fallocate(scattered.fileno(), 0, 1800 << 20)
            for place in (0, 1700 << 20):
                scattered.seek(place)
                for _ in range(60):
                    scattered.write(os.urandom(1 << 20))
            os.fsync(scattered.fileno())
        SLOWDOWN.write_text("30\n")
        mdadm("/dev/md0", "--re-add", DISK)
        wait_until(lambda: "summary" in output.read_text(), 180, "the end of the recovery")
    finally:
        SLOWDOWN.write_text("1\n")
        os.kill(child, signal.SIGTERM)
        ended(child)
        file.unlink(missing_ok=True)
        mdadm("--grow", "/dev/md0", "--bitmap=none")
    (summary,) = (each for each in documents(output) if each.get("kind") == "summary")
    assert summary["ended"] == "the recovery is over"
    # Of a member of 1 GiB, over nine tenths of which it went.
    assert 0 < summary["synced_bytes"] < 400 << 20
