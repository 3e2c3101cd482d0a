"""A real recovery tuned as it runs, on raid5-hdd; `test_run.py` runs this there, in this order."""

import hashlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import Follower, autotune, autotune_json, knob_files, read, running, wait_until

from autotune.errors import StoppedError
from autotune.measure import live_sync
from autotune.measure.workload import load_workload
from autotune.store.database import Store
from autotune.system import sysfs
from autotune.system.mdstat import sync_position_kib
from autotune.tuning.preparation import Options
from autotune.tuning.run import run

MD = Path("/sys/block/md0/md")
DISK = "/dev/vdd"
SLOWDOWN = Path("/run/lab/disks/vdd/slowdown")
FILE = Path("/mnt/md0/file")
PROFILE = """{"schema_version": 1, "name": "by-hand", "created": "2026-01-01T00:00:00Z",
"proven_on": {"level": "raid5", "members": 4, "chunk_kib": 128, "media": "hdd", "kernel": "6.1"},
"workload": "rebuild", "knobs": {KNOBS}, "before": {}, "ram_bytes": 1, "ram_budget_bytes": 2,
"evidence": {"gain": 1.5, "low": 1.4, "high": 1.6, "trials": 9, "seconds": 9, "figures": {}}}"""
NEVER_WRITTEN = ("sync_action", "sync_min", "sync_max", "group_thread_cnt")


class Witness:
    """Looks at the recovery all the while, from a thread of its own."""

    def __init__(self) -> None:
        self.actions: set[str] = set()
        self.bounds: set[tuple[str, str]] = set()
        self.positions: list[int] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._done.wait(0.1):
            position = sync_position_kib(Path("/proc/mdstat").read_text(), "md0")
            self.actions.add(read(MD / "sync_action"))
            self.bounds.add((read(MD / "sync_min"), read(MD / "sync_max")))
            if position:
                self.positions.append(position[0])

    def __enter__(self) -> "Witness":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def mdadm(*words: str) -> None:
    subprocess.run(["mdadm", *words], check=True, capture_output=True)


def recover(slowdown: float) -> None:
    """Take a disk out and put it in again as a new one that is so much slower."""
    if "vdd" in {p.name.removeprefix("dev-") for p in MD.glob("dev-*")}:
        subprocess.run(["mdadm", "/dev/md0", "--fail", DISK], check=False, capture_output=True)
        wait_until(lambda: read(MD / "sync_action") == "idle", what="the failure")
        mdadm("/dev/md0", "--remove", DISK)
    mdadm("--zero-superblock", DISK)
    SLOWDOWN.write_text(f"{slowdown}\n")
    mdadm("/dev/md0", "--add", DISK)
    wait_until(lambda: read(MD / "sync_action") == "recover", what="the recovery")


def recovering() -> None:
    """A slow recovery, unless the tests before have left one running."""
    if read(MD / "sync_action") != "recover":
        recover(slowdown=12)


def settled_knobs() -> dict[str, str]:
    """What autotune may change; the kernel moves the rest as the recovery goes."""
    return {k: v for k, v in knob_files().items() if not k.endswith(NEVER_WRITTEN)}


def options(**more: object) -> Options:
    return Options("/dev/md0", load_workload("rebuild"), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def digest() -> str:
    data = os.urandom(64 << 20)
    FILE.write_bytes(data)
    os.sync()
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of all files that this process stores to; the kernel's window is cut short."""
    names: list[str] = []
    store = sysfs.write

    def write(path: Path, text: str, *rest: float) -> None:
        names.append(path.name)
        store(path, text, *rest)

    monkeypatch.setattr(sysfs, "write", write)
    monkeypatch.setattr(live_sync, "WINDOW_S", 3.0)
    yield names
    assert not set(names) & set(NEVER_WRITTEN)


def test_only_a_workload_of_syncs_runs_beside_a_recovery(digest: str, state: Path) -> None:
    recover(slowdown=12)
    done = autotune("run", "/dev/md0", state=state)
    assert done.returncode == 1
    assert "autotune run /dev/md0 --workload rebuild" in done.stderr
    relative = ("--workload", "rebuild", "--p99-ceiling", "2x")
    assert "in ms" in autotune("run", "/dev/md0", *relative, state=state).stderr


def test_the_plan_has_what_can_be_measured_and_moved(state: Path) -> None:
    plan = autotune_json("run", "/dev/md0", "--workload", "rebuild", "--dry-run", state=state)
    assert list(plan["phases"]) == ["resync"]
    assert plan["left_out"] == ["idle"]
    assert set(plan["knobs"]) == {
        "stripe_cache_size", "sync_speed_min", "sync_speed_max", "scheduler",
    }  # fmt: skip
    assert "tuned as it runs" in " ".join(plan["notes"])


def test_a_profile_applies_beside_a_recovery_if_it_is_safe_there(
    state: Path, tmp_path: Path
) -> None:
    knobs, path = knob_files(), tmp_path / "profile.json"
    path.write_text(PROFILE.replace("KNOBS", '"sync_speed_max": 150000'))
    done = autotune_json("apply", path, "/dev/md0", state=state)
    assert done["after"] == {"sync_speed_max": 150_000}
    assert read(MD / "sync_action") == "recover"
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    assert knob_files() == knobs
    path.write_text(PROFILE.replace("KNOBS", '"group_thread_cnt": 1'))
    refused = autotune("apply", path, "/dev/md0", state=state)
    assert refused.returncode == 1
    assert "must not be written while a sync runs (recover)" in refused.stderr
    assert read(MD / "group_thread_cnt") == "0"
    assert knob_files() == knobs


@pytest.mark.slow
def test_a_recovery_goes_on_while_it_is_tuned(state: Path, written: list[str]) -> None:
    recovering()
    knobs, follower = settled_knobs(), Follower()
    asked = options(strategy="random", trials=3, ram_budget=96 << 20, careful=False)
    with Witness() as witness:
        done = run(asked, state, follower)
    assert witness.actions == {"recover"}
    assert len(witness.bounds) == 1
    assert witness.positions == sorted(witness.positions)
    assert witness.positions[-1] > witness.positions[0]
    assert settled_knobs() == knobs
    assert "sync_speed_max" in written
    assert (done.left_out, done.not_measured) == (
        ("idle",),
        "Not measured: idle, since the array is never idle.",
    )
    assert not follower.notices
    trials = Store(state).trials(done.number)
    assert [t.role for t in trials[:3]] == ["baseline", "baseline", "search"]
    assert trials[0].figures["resync.throughput"].value > 0
    # The busier the machine, the fewer samples: a p99 of too few is not told.
    assert trials[0].figures["resync.p50"].value > 0
    assert not running("fio")


@pytest.mark.slow
def test_a_recovery_that_breaks_off_ends_the_run(state: Path, written: list[str]) -> None:
    knobs = settled_knobs()

    def fail() -> None:
        mdadm("/dev/md0", "--fail", DISK)

    with pytest.raises(StoppedError, match="was interrupted"):
        run(options(strategy="random"), state, Follower(fail))
    assert {k: v for k, v in settled_knobs().items() if "vdd" not in k} == {
        k: v for k, v in knobs.items() if "vdd" not in k
    }


def test_the_end_of_the_recovery_is_an_orderly_end(state: Path, written: list[str]) -> None:
    recover(slowdown=12)
    knobs = settled_knobs()

    def hurry() -> None:
        SLOWDOWN.write_text("0.1\n")

    done = run(options(strategy="random", trials=50), state, Follower(hurry))
    assert not done.result.keep
    assert "the recovery of /dev/md0 has ended" in done.result.reason
    assert done.result.before["resync.throughput"].value > 0
    assert settled_knobs() == knobs
    assert not running("fio")


def test_the_array_is_whole_in_the_end(digest: str) -> None:
    SLOWDOWN.write_text("1\n")
    assert (read(MD / "sync_action"), read(MD / "degraded")) == ("idle", "0")
    assert (read(MD / "sync_min"), read(MD / "sync_max")) == ("0", "max")
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == digest
    (MD / "sync_max").write_text("131072")
    (MD / "sync_action").write_text("check")
    wait_until(lambda: read(MD / "sync_completed").startswith("131072 "), what="the check")
    (MD / "sync_action").write_text("idle")
    (MD / "sync_min").write_text("0")
    (MD / "sync_max").write_text("max")
    assert read(MD / "mismatch_cnt") == "0"
