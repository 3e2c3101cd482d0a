"""What guest tests share: the state of an array's knobs, and runs of autotune."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from autotune.cli import guarding
from autotune.cli.main import main
from autotune.problem.figure import Estimate
from autotune.store import TrialRecord

AUTOTUNE = (sys.executable, "-m", "autotune")
FAST = """
name = "fast"
long_seconds = 0
[[phases]]
name = "write"
weight = 1
load = { rw = "write", block_kib = 1024, streams = 3, buffered = true, sync_every = 8 }
min_seconds = 3
max_seconds = 4
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 60 }
min_seconds = 3
max_seconds = 4
"""

WRITE = """
name = "write"
long_seconds = 10
[[phases]]
name = "write"
weight = 1
load = { rw = "write", block_kib = 1024, streams = 3, buffered = true, sync_every = 8 }
min_seconds = 4
max_seconds = 6
"""


class Follower:
    """A reporter that remembers, and does something after each trial."""

    def __init__(self, after_trial: Callable[[], None] = lambda: None) -> None:
        self.notices: list[str] = []
        self._after_trial = after_trial

    def step(self, text: str) -> None: ...

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def progress(
        self, what: str, share: float, left_s: float | None, most_s: float | None = None
    ) -> None: ...

    def ceilings(self, limits_ns: Mapping[str, float]) -> None: ...

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        self._after_trial()


def read(path: Path) -> str:
    return path.read_text().strip()


def knob_files(name: str = "md0") -> dict[str, str]:
    """Every file that a knob or a check of this array can change, and what it reads."""
    block = Path("/sys/block") / name
    members = [p.name.removeprefix("dev-") for p in (block / "md").glob("dev-*")]
    files = [block / "queue" / file for file in ("read_ahead_kb", "max_sectors_kb")]
    names = ("stripe_cache_size", "sync_speed_min", "sync_speed_max", "sync_min", "sync_max")
    names += ("group_thread_cnt", "rmw_level", "preread_bypass_threshold")
    files += [block / "md" / file for file in (*names, "safe_mode_delay", "sync_action")]
    for member in members:
        entry = (Path("/sys/class/block") / member).resolve()
        disk = entry.parent.name if (entry / "partition").exists() else member
        queue = Path("/sys/block") / disk / "queue"
        files += [queue / f for f in ("scheduler", "nr_requests", "wbt_lat_usec", "max_sectors_kb")]
        files += [*sorted((queue / "iosched").glob("*")), queue.parent / "device/queue_depth"]
    found = {}
    for file in files:
        # What is a scheduler's own goes while it is read, if somebody switches to another one.
        with contextlib.suppress(OSError if "iosched" in file.parts else FileNotFoundError):
            found[str(file)] = read(file)
    return found


def autotune(*words: object, state: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of autotune to its end: in this process, since the guest takes 5 s to start
    one. What is to be killed is started with `start`."""
    output, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["autotune", *map(str, words)]),
        mock.patch.dict(os.environ, {"AUTOTUNE_STATE_DIR": str(state)}),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        # It would take the place of the tests.
        mock.patch.object(guarding, "become", guarding.guard),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def autotune_json(*words: object, state: Path) -> Any:
    """The JSON that a command prints. AssertionError with its errors if it fails."""
    done = autotune(*words, "--json", state=state)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def start(
    *words: object, state: Path, program: tuple[str, ...] = AUTOTUNE
) -> subprocess.Popen[str]:
    """Start a command of autotune in a session of its own."""
    return subprocess.Popen(
        [*program, *map(str, words)],
        env={**os.environ, "AUTOTUNE_STATE_DIR": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(condition: Callable[[], bool], timeout_s: float = 60, what: str = "") -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)


def guardians() -> list[int]:
    """The processes of guardians, and of what waits for the end of a sync to put something back."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"autotune.safety.guardian" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def signal_guardians(number: int = signal.SIGKILL) -> None:
    for pid in guardians():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def running(name: str) -> list[str]:
    """The command lines of all processes of this name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if read(folder / "comm") == name:
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found
