"""What ends a run at once, provoked, on raid5-hdd; `test_run.py` runs this there, in this order."""

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guest import Follower, knob_files, read, running, signal_guardians, wait_until

from autotune.errors import StoppedError
from autotune.measure.workload import load_workload
from autotune.system.memory import available_bytes, reserve_bytes
from autotune.tuning.preparation import Options
from autotune.tuning.run import run

MD = Path("/sys/block/md0/md")
AHEAD = Path("/sys/block/md0/queue/read_ahead_kb")
ORIGINAL_AHEAD = read(AHEAD)
WITHIN_S = 20.0
"""A phase here takes a minute. Two seconds are meant; what a busy machine makes of them, with all
that is put back, is printed."""
LONG = """
name = "long"
[[phases]]
name = "long"
weight = 1
min_seconds = 60
max_seconds = 60
"""
WRITE = 'load = { rw = "write", block_kib = 1024, buffered = true, sync_every = 8 }'
CHECK = "check = true\nprobe = { rate_iops = 60 }"


class Clock(Follower):
    """Notes that a phase is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.phase = threading.Event()

    def progress(
        self, what: str, share: float, left_s: float | None, most_s: float | None = None
    ) -> None:
        if what.startswith("Trial") and share > 0.05:
            self.phase.set()


def turn_a_knob() -> None:
    AHEAD.write_text("1000")


def start_a_repair() -> None:
    (MD / "sync_action").write_text("repair")


def fail_a_disk() -> None:
    Path("/run/lab/disks/vdd/fail").write_text("1\n")


held: list[bytearray] = []


def leave(spare_bytes: int) -> None:
    """Take memory until so much more is available than a run must leave."""
    root = Path("/")
    held.append(bytearray(b"x") * (available_bytes(root) - reserve_bytes(root) - spare_bytes))


def fill_the_memory() -> None:
    leave(-reserve_bytes(Path("/")) // 2)


def free_the_memory() -> None:
    held.clear()


def stop_the_repair() -> None:
    (MD / "sync_action").write_text("idle")
    (MD / "sync_min").write_text("0")


def start_a_check() -> None:
    (MD / "sync_action").write_text("check")


def end_the_check() -> None:
    (MD / "sync_action").write_text("idle")


CASES: dict[str, tuple[Callable[[], None], Callable[[], object], str]] = {
    "knob": (
        turn_a_knob,
        lambda: AHEAD.write_text(ORIGINAL_AHEAD),
        "somebody else set read_ahead_kb to 1000",
    ),
    "memory": (fill_the_memory, free_the_memory, "MiB of memory are available"),
    "repair": (start_a_repair, stop_the_repair, "a repair of /dev/md0 has started"),
    "check": (start_a_check, stop_the_repair, "somebody else has started a check of /dev/md0"),
    "guardian": (signal_guardians, lambda: None, "the guardian process was killed"),
    "check ended": (end_the_check, lambda: None, "somebody else ended the check"),
    "disk": (fail_a_disk, lambda: None, "/dev/md0 is degraded"),
}


SLOW = {"memory", "guardian", "repair", "check", "check ended"}


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in CASES]
)
def test_what_goes_wrong_ends_the_run_soon(case: str, tmp_path: Path) -> None:
    provoke, repair, message = CASES[case]
    path = tmp_path / "long.toml"
    path.write_text(LONG + (CHECK if case == "check ended" else WRITE))
    before, clock, provoked = knob_files(), Clock(), [0.0]

    def wait_and_provoke() -> None:
        clock.phase.wait(120)
        provoke()
        provoked[0] = time.monotonic()

    if case == "memory":
        # Most of it before, since beside fio the guest takes a minute for it.
        leave(100 << 20)
    thread = threading.Thread(target=wait_and_provoke)
    thread.start()
    with pytest.raises(StoppedError, match=message):
        run(Options("/dev/md0", load_workload(str(path)), strategy="random"), tmp_path, clock)
    took_s = time.monotonic() - provoked[0]
    thread.join()
    repair()
    print(f"{case}: {took_s:.1f} s")
    assert took_s < WITHIN_S
    after = knob_files()
    if case != "disk":
        assert after == before
    else:
        # The failed member is gone from the list of those whose knobs are compared.
        assert all(after[name] == text for name, text in before.items() if name in after)
    assert not running("fio")
    assert not list((tmp_path / "journal").glob("*"))


def test_the_array_still_works_without_its_disk() -> None:
    wait_until(lambda: read(MD / "degraded") == "1", what="the failure")
    subprocess.run(["dd", "if=/dev/zero", "of=/mnt/md0/file", "bs=1M", "count=8"], check=True)
