"""Runs and guards that no kill ends: what they have set goes back all the same. On raid5-hdd;
`test_run.py` runs this there."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from guest import FAST, knob_files, read, running, wait_until
from guest import start as start_command
from guest_guard import ended, foreground, is_shut, recovering
from guest_guard import start as start_guard
from guest_rebuild import settled_knobs

from autotune.safety import heartbeat

SOON_S = 15.0
"""In place of a minute. A busy guest may be silent for some seconds."""
HURRIED = f"""#!{sys.executable}
import os, sys
from pathlib import Path
from autotune.safety import guardian, heartbeat
if "autotune.safety.guardian" not in sys.argv:
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
heartbeat.BEAT_S, heartbeat.SILENCE_S = 0.1, {SOON_S}
sys.exit(guardian.watch_over(Path(sys.argv[-1])))
"""
COMMAND = """
import sys
from autotune.__main__ import command
from autotune.safety import heartbeat
heartbeat.BEAT_S, sys.executable = 1.0, sys.argv[1]
sys.argv = ["autotune", *sys.argv[2:]]
command()
"""


def sh(*words: object) -> None:
    subprocess.run([*map(str, words)], check=True, capture_output=True)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python whose guardians wait for less time."""
    program = tmp_path / "python"
    program.write_text(HURRIED)
    program.chmod(0o755)
    return program


@contextlib.contextmanager
def filesystem(tmp_path: Path) -> Iterator[Path]:
    """A folder of root's on a filesystem of its own, on the device-mapper device "store"."""
    image, folder = tmp_path / "image", tmp_path / "state"
    folder.mkdir()
    sh("fallocate", "-l", "64M", image)
    sh("losetup", "/dev/loop7", image)
    sh("dmsetup", "create", "store", "--table", f"0 {64 << 11} linear /dev/loop7 0")
    sh("mkfs.ext4", "-q", "/dev/mapper/store")
    sh("mount", "/dev/mapper/store", folder)
    folder.chmod(0o700)
    yield folder
    sh("umount", folder)
    sh("dmsetup", "remove", "store")
    sh("losetup", "-d", "/dev/loop7")


@contextlib.contextmanager
def frozen(state: Path) -> Iterator[None]:
    """As for a backup."""
    sh("fsfreeze", "--freeze", state)
    try:
        yield
    finally:
        sh("fsfreeze", "--unfreeze", state)


@contextlib.contextmanager
def silent(_state: Path) -> Iterator[None]:
    """Its disk answers nothing; only this waits where the time of access is to be noted, too."""
    sh("dmsetup", "suspend", "--noflush", "--nolockfs", "store")
    try:
        yield
    finally:
        sh("dmsetup", "resume", "store")


@pytest.mark.parametrize(
    ("hanging", "killed"),
    [
        (frozen, False),
        (silent, True),
        pytest.param(frozen, True, marks=pytest.mark.slow),
        pytest.param(silent, False, marks=pytest.mark.slow),
    ],
)
def test_a_run_whose_state_folder_hangs(
    python: Path,
    tmp_path: Path,
    hanging: Callable[[Path], AbstractContextManager[None]],
    killed: bool,
) -> None:
    """Its next line in the journal, or in the store, waits for that."""
    workload, knobs = tmp_path / "fast.toml", knob_files()
    workload.write_text(FAST)
    words = ("run", "/dev/md0", "--workload", workload, "--knobs", "scheduler,stripe_cache_size")
    program = (sys.executable, "-c", COMMAND, str(python))
    with filesystem(tmp_path) as state:
        run = start_command(
            *words, "--strategy", "random", "--p99-ceiling", "5s", state=state, program=program
        )
        try:
            wait_until(lambda: _differs(knobs), 240, "a trial")
            with hanging(state):
                run.send_signal(signal.SIGKILL if killed else signal.SIGINT)
                _goes_back(knobs)
            run.communicate(timeout=60)
            wait_until(lambda: not list((state / "journal").glob("*")), 60, "the journal's end")
            assert knob_files() == knobs
            assert not running("fio")
        finally:
            run.kill()
            run.wait(60)


def _goes_back(knobs: dict[str, str]) -> None:
    with contextlib.suppress(AssertionError):
        wait_until(lambda: knob_files() == knobs, 120)
    # Which ones do not.
    assert {*knob_files().items()} ^ {*knobs.items()} == set()


def _differs(knobs: dict[str, str]) -> bool:
    """Whether a trial has changed a scheduler, which is what goes back first."""
    now = knob_files()
    return any(now.get(name) != text for name, text in knobs.items() if name.endswith("scheduler"))


def test_a_guard_that_a_control_group_holds(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of version 1, whose freezer no SIGKILL comes through."""
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(heartbeat, "BEAT_S", 1.0)
    groups = tmp_path / "freezer"
    groups.mkdir()
    sh("mount", "-t", "cgroup", "-o", "freezer", "freezer", groups)
    held = groups / "held"
    held.mkdir()
    recovering()
    knobs = settled_knobs()
    with foreground():
        child = start_guard(tmp_path / "state", tmp_path / "output", "--p99-ceiling", "5ms")
        try:
            wait_until(is_shut, 60, "a shut throttle")
            (held / "cgroup.procs").write_text(str(child))
            (held / "freezer.state").write_text("FROZEN")
            wait_until(is_shut, 10, "a shut throttle")
            wait_until(lambda: settled_knobs() == knobs, 120, "what was there before")
            assert read(held / "freezer.state") == "FROZEN"
        finally:
            (held / "freezer.state").write_text("THAWED")
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            assert ended(child) == -signal.SIGKILL
    assert settled_knobs() == knobs
    held.rmdir()
    sh("umount", groups)
