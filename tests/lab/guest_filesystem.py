"""Runs on a RAID5 with a filesystem in the lab; `test_run.py` runs this there."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from guest import FAST, autotune, autotune_json, knob_files, running, start, wait_until

from autotune.measure.check import Check
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.store.database import Store
from autotune.system import sysfs
from autotune.system.array import find_array

MOUNT = Path("/mnt/md0")
PROFILE = """{"schema_version": 1, "name": "p", "created": "2026-01-01T00:00:00Z",
"proven_on": {"level": "raid5", "members": 5, "chunk_kib": 128, "media": "hdd", "kernel": "6.1"},
"workload": "fast", "knobs": {"stripe_cache_size": 512}, "before": {"stripe_cache_size": 256},
"ram_bytes": 1, "ram_budget_bytes": 2, "evidence": {"confirmed": false, "gain": 1.5, "low": 1.4,
"high": 1.6, "trials": 9, "seconds": 9, "figures": {}}}"""


def checksums() -> dict[str, str]:
    """Of every file on the filesystem, read from the disks."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    sums = {}
    for path in sorted(MOUNT.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                sums[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """A whole run: two baseline trials, three of the search, and the confirming ones."""
    path = tmp_path_factory.mktemp("workload") / "fast.toml"
    path.write_text(FAST)
    how = ("--strategy", "recipe", "--trials", 3, "--p99-ceiling", "5s", "--ram-budget", "96MiB")
    return ("run", "/dev/md0", "--workload", path, *how)


def trials(state: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = autotune_json("history", 1, state=state)["trials"]
    return listed


@pytest.mark.slow
def test_a_killed_run_is_undone_then_goes_on_and_writes_nothing_outside_its_scratch_file(
    state: Path, words: tuple[object, ...]
) -> None:
    block = os.urandom(1 << 20)
    with (MOUNT / "large").open("wb") as file:
        for _ in range(300):
            file.write(block)
    (MOUNT / "deep/er").mkdir(parents=True)
    (MOUNT / "deep/er/small").write_text("small")
    before, knobs = checksums(), knob_files()
    process = start(*words, state=state)

    def in_the_second_of_the_search() -> bool:
        store = Store.existing(state)
        return store is not None and bool(store.runs()) and len(store.trials(1)) == 3

    wait_until(in_the_second_of_the_search, 200, "three trials")
    wait_until(lambda: bool(running("fio")), what="the fourth trial")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    wait_until(lambda: not list((state / "journal").glob("*")), 60, "the guardian")
    wait_until(lambda: not running("fio"), 60, "fio to end")
    assert knob_files() == knobs
    assert checksums() == before
    kept = trials(state)
    assert [t["number"] for t in kept] == [1, 2, 3]

    done = autotune_json(*words, "--resume", state=state)
    assert knob_files() == knobs
    assert checksums() == before
    assert {path.name for path in MOUNT.iterdir()} == {"large", "deep", "lost+found"}
    assert done["run"] == 1
    assert done["bytes_written"] > 0
    after = trials(state)
    assert after[:3] == kept
    assert [t["number"] for t in after] == list(range(1, len(after) + 1))
    # What has drifted since the kill is seen before it goes on.
    assert [t["role"] for t in after][:5] == [*["baseline"] * 2, "search", "baseline", "search"]
    searched = [json.dumps(t["requested"], sort_keys=True) for t in after if t["role"] == "search"]
    assert len(set(searched)) == len(searched)
    assert done["trials"] == len(after)
    assert autotune_json("history", state=state)[0]["state"] == "done"


@pytest.mark.slow
def test_a_check_ends_at_once_though_md_may_not_have_begun_it(tmp_path: Path) -> None:
    """Every other time it has not, and then ignores that it is told to end."""
    array = find_array("md0")
    bounds = [array.md / "sync_min", array.md / "sync_max"]
    before = [sysfs.read(path) for path in bounds]
    for _ in range(8):
        path = journal_path(tmp_path, array.uuid)
        journal = new_journal(path, array.uuid, array.device, bounds)
        began_s = time.monotonic()
        with Check(array.name, journal):
            pass
        assert time.monotonic() - began_s < 15
        assert sysfs.read(array.md / "sync_action") == "idle"
        assert [sysfs.read(path) for path in bounds] == before
        journal.close()
        journal.release()


def test_a_run_that_ended_has_nothing_to_resume(state: Path, words: tuple[object, ...]) -> None:
    again = autotune(*words, "--resume", state=state)
    assert again.returncode == 1
    assert "nothing to resume" in again.stderr


@pytest.mark.slow
def test_another_answer_is_chosen_without_the_array(state: Path, tmp_path: Path) -> None:
    before = knob_files()
    run = autotune_json("history", 1, state=state)
    decided = autotune_json("solve", 1, state=state)
    assert decided["confirmed"]
    assert decided["adopt"] == bool(run["profile"])
    assert decided["setting"] == run["named"]["balanced"]["setting"]
    strict = autotune("solve", 1, "--p99-ceiling", "1ms", "--save", tmp_path / "p", state=state)
    assert strict.returncode == 1
    # In four seconds the probe makes fewer requests than a p99 takes.
    assert "no p99" in strict.stderr
    assert not (tmp_path / "p").exists()
    assert knob_files() == before


CRASHING = """
import ctypes
from autotune.strategies.random import Random
class Crashing(Random):
    def ask(self):
        return super().ask() if self._told < 3 else ctypes.string_at(0)
"""


@pytest.mark.slow
def test_a_search_that_dies_of_a_native_fault_says_so_and_goes_on_later(
    state: Path, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its strategy is that of another package."""
    (tmp_path / "crashing.py").write_text(CRASHING)
    package = tmp_path / "crashing-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: crashing\nVersion: 1\n")
    entry = "[autotune.strategies]\ncrashing = crashing:Crashing\n"
    (package / "entry_points.txt").write_text(entry)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    knobs = knob_files()
    process = start(*words, "--strategy", "crashing", state=state)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1, errors
    assert "ended by a segmentation fault in" in errors
    assert "The original settings are back." in errors
    assert "--resume" in errors
    assert knob_files() == knobs
    assert not list((state / "journal").glob("*"))
    run = autotune_json("history", state=state)[0]
    assert (run["state"], run["trials"]) == ("interrupted", 3)
    assert autotune("solve", run["id"], state=state).returncode == 0


def test_a_profile_that_was_not_confirmed_says_so_when_applied(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(PROFILE)
    applied = autotune("apply", path, "/dev/md0", state=state)
    assert applied.returncode == 0, applied.stderr
    assert "is not proven" in applied.stderr
    assert "raid5 of 5 (hdd); this is raid5 of 4 (hdd)" in applied.stderr
    assert "more than the 2 B" in applied.stderr
    assert autotune("restore", "/dev/md0", state=state).returncode == 0


def test_what_is_set_of_a_scheduler_after_two_profiles_stays(state: Path, tmp_path: Path) -> None:
    """The first profile has another scheduler, whose own settings are no originals of the disks."""
    path, queue = tmp_path / "p.json", Path("/sys/block/vda/queue")
    found = sysfs.value(queue / "scheduler")
    sysfs.write(queue / "scheduler", "mq-deadline")
    before = sysfs.original(queue / "iosched/fifo_batch")
    for scheduler in ("kyber", "mq-deadline"):
        path.write_text(json.dumps({**json.loads(PROFILE), "knobs": {"scheduler": scheduler}}))
        applied = autotune("apply", path, "/dev/md0", state=state)
        assert applied.returncode == 0, applied.stderr
    status = autotune("status", state=state)
    assert status.returncode == 0, status.stdout
    sysfs.write(queue / "iosched/fifo_batch", "5")
    back = autotune("restore", "/dev/md0", state=state)
    assert "vda/queue/iosched/fifo_batch reads 5, which was set after that" in back.stdout
    assert sysfs.original(queue / "iosched/fifo_batch") == "5"
    sysfs.write(queue / "iosched/fifo_batch", before)
    sysfs.write(queue / "scheduler", found)


@pytest.mark.parametrize(
    "own", [{"strict_guarantees": "1", "slice_idle": "0"}, {"slice_idle_us": "1500"}]
)
def test_what_bfq_was_set_to_comes_back_with_it(
    state: Path, tmp_path: Path, own: dict[str, str]
) -> None:
    """Its strict_guarantees raises its slice_idle, which is one number in two files."""
    path, array, profile = tmp_path / "p.json", find_array("md0"), json.loads(PROFILE)
    profile["proven_on"]["chunk_kib"] = array.chunk_bytes >> 10
    path.write_text(json.dumps({**profile, "knobs": {"scheduler": "kyber"}}))
    queues = [Path(f"/sys/block/{disk}/queue") for disk in array.disks]
    found = [sysfs.value(queue / "scheduler") for queue in queues]
    for queue in queues:
        sysfs.write(queue / "scheduler", "bfq")
        for name, text in own.items():
            sysfs.write(queue / "iosched" / name, text)
    before = knob_files()
    try:
        assert autotune("apply", path, "/dev/md0", state=state).returncode == 0
        back = autotune("restore", "/dev/md0", state=state)
        assert (back.returncode, back.stdout.count("stays")) == (0, 0), back.stdout
        assert knob_files() == before
        script = tmp_path / "script"
        words = ("export", path, "--format", "shell", "--out", script)
        assert autotune(*words, state=state).returncode == 0
        (file,) = script.iterdir()
        for word in ("apply", "undo"):
            subprocess.run(["sh", file, word, "/dev/md0"], check=True)
        assert knob_files() == before
    finally:
        for queue, scheduler in zip(queues, found, strict=True):
            sysfs.write(queue / "scheduler", scheduler)


def test_a_state_folder_on_the_array_itself_is_told_of(tmp_path: Path) -> None:
    """It may be unmounted while the array goes on with the profile."""
    path, state = tmp_path / "p.json", MOUNT / "state"
    path.write_text(PROFILE)
    applied = autotune("apply", path, "/dev/md0", state=state)
    assert applied.returncode == 0, applied.stderr
    said = " ".join(applied.stderr.split())
    assert f"{state} is on /dev/md0 itself. While {MOUNT} is not mounted" in said
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    shutil.rmtree(state)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"sync_speed_min": 1, "sync_speed_max": 1}, "a rebuild"),
        ({"stripe_cache_size": 32768}, "more than the budget"),
        ({"nr_requests": 4}, "below 16"),
        ({"max_sectors_kb": 4}, "below 64"),
        ({"read_ahead_kb": 1 << 20}, "above"),
    ],
)
def test_a_strangers_profile_that_does_harm_is_not_set(
    state: Path, tmp_path: Path, knobs: dict[str, int], words: str
) -> None:
    before, path = knob_files(), tmp_path / "p.json"
    path.write_text(json.dumps({**json.loads(PROFILE), "knobs": knobs}))
    for more in ((), ("--persist",)):
        done = autotune("apply", path, "/dev/md0", *more, state=state)
        assert done.returncode, done.stdout
        assert words in done.stderr
    assert knob_files() == before
    if "stripe_cache_size" in knobs:
        return
    if "read_ahead_kb" not in knobs:  # That is rescaled to what does no harm.
        where = ("--device", "/dev/md0", "--workload", "quick")
        brought = autotune("import", path, *where, "--no-verify", state=state)
        said = " ".join(brought.stdout.split())
        assert (brought.returncode, words in said) == (1, True), said + brought.stderr
    assert autotune("export", path, "--format", "shell", state=state).returncode == 2
    assert knob_files() == before


def test_a_low_speed_is_told_of_and_a_harmful_one_has_to_be_forced(
    state: Path, tmp_path: Path
) -> None:
    before, path = knob_files(), tmp_path / "p.json"
    document = json.loads(PROFILE)
    # What does not say that it was proven is not.
    del document["evidence"]["confirmed"]
    path.write_text(json.dumps({**document, "knobs": {"sync_speed_max": 5000}}))
    low = autotune("apply", path, "/dev/md0", state=state)
    assert low.returncode == 0, low.stderr
    assert "5000 is low for such members" in low.stderr
    assert "is not proven" in low.stderr
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    path.write_text(json.dumps({**document, "knobs": {"nr_requests": 4}}))
    forced = autotune("apply", path, "/dev/md0", "--force", state=state)
    assert forced.returncode == 0, forced.stderr
    assert "below 16" in forced.stderr
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    assert knob_files() == before


REFUSALS = {
    "is not on /dev/md0": (("--scratch", "/tmp"), 1),
    "is mounted on /mnt/md0": (("--destructive", "/dev/md0"), 1),
    "--destructive names /dev/vda": (("--destructive", "/dev/vda"), 2),
    "There is no strategy": (("--strategy", "nonsense"), 2),
    "There is no workload": (("--workload", "nonsense"), 2),
    "There is no phase": (("--p99-ceiling", "nonsense=5ms"), 2),
    "is not a latency": (("--p99-ceiling", "5 parsecs"), 2),
    "below the": (("--ram-budget", "1MiB"), 1),
    "more than this machine's": (("--ram-budget", "9TiB"), 2),
    "nothing could be tried and proven": (("--time", "20s"), 2),
    "is not a time": (("--time", "soon"), 2),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_makes_no_sense_is_refused_and_nothing_is_changed(reason: str, state: Path) -> None:
    words, code = REFUSALS[reason]
    knobs = knob_files()
    done = autotune("run", "/dev/md0", *words, state=state)
    assert (done.returncode, done.stdout) == (code, "")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert knob_files() == knobs


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        ("/dev/nonsense", "There is no /dev/nonsense"),
        ("/dev/null", "is not a block device"),
        ("/dev/vda", "a member of the array /dev/md0"),
        ("/etc", "is a folder"),
    ],
)
def test_what_is_no_array_is_refused(device: str, reason: str, state: Path) -> None:
    done = autotune("run", device, state=state)
    assert done.returncode == 2
    assert reason in done.stderr


@pytest.mark.slow
def test_a_ceiling_that_the_idle_array_breaks_ends_the_run_in_one_sentence(
    state: Path, tmp_path: Path
) -> None:
    knobs = knob_files()
    workload = tmp_path / "idle.toml"
    workload.write_text(FAST + '[[phases]]\nname = "idle"\nprobe = { rate_iops = 100 }\n')
    words = ("--workload", workload, "--p99-ceiling", "100us")
    done = autotune("run", "/dev/md0", *words, state=state)
    assert done.returncode == 1
    assert "the idle array already takes" in done.stderr
    assert knob_files() == knobs


def test_a_mounted_array_is_seen_through_a_symlink_too(state: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/md0")
    done = autotune("run", link, "--destructive", link, state=state)
    assert done.returncode == 1
    assert "is mounted on /mnt/md0" in done.stderr


def test_show_says_what_is_mounted(state: Path) -> None:
    done = autotune("show", "/dev/md0", state=state)
    assert done.returncode == 0
    assert "/mnt/md0" in done.stdout
    assert "stripe_cache_size" in done.stdout


def test_what_is_kept_after_writes_to_a_scratch_file_stays_in_force(tmp_path: Path) -> None:
    """The file is gone after the journal has said that nothing goes back. And what comes with the
    scheduler is no fault."""
    state, profile, workload = tmp_path / "state", tmp_path / "p.json", tmp_path / "w.toml"
    changed = '"knobs": {"scheduler": "bfq", '
    profile.write_text(PROFILE.replace('"knobs": {', changed))
    workload.write_text(
        'name = "writes"\nlong_seconds = 0\n[[phases]]\nname = "write"\nweight = 1\n'
        'load = { rw = "write", block_kib = 1024, buffered = true, sync_every = 8 }\n'
        "min_seconds = 4\nmax_seconds = 6\n"
    )
    cache = Path("/sys/block/md0/md/stripe_cache_size")
    # So much slower that any other value is kept.
    cache.write_text("17")
    try:
        words = ("import", profile, "--device", "/dev/md0", "--workload", workload)
        done = autotune(*words, state=state)
        assert done.returncode == 0, done.stderr
        assert not list(MOUNT.glob(".autotune*"))
        assert cache.read_text() == "512\n"
        status = autotune("status", state=state)
        assert "no profile is in force" not in status.stdout
        assert status.returncode == 0, status.stdout
        assert autotune("restore", "--all", state=state).returncode == 0
        assert cache.read_text() == "17\n"
    finally:
        cache.write_text("256")


def test_z_arrays_in_a_bad_state_are_refused(state: Path) -> None:
    """Last: it takes the array apart."""
    md = Path("/sys/block/md0/md")

    def refused(reason: str) -> None:
        done = autotune("run", "/dev/md0", state=state)
        assert done.returncode == 1, done.stdout
        assert reason in done.stderr

    (md / "sync_action").write_text("check")
    refused("is being checked")
    (md / "sync_action").write_text("idle")
    (md / "sync_min").write_text("0")
    subprocess.run(["mdadm", "/dev/md0", "--fail", "/dev/vdd", "--remove", "/dev/vdd"], check=True)
    refused("degraded")
    (md / "sync_speed_max").write_text("1000")
    subprocess.run(["mdadm", "/dev/md0", "--add", "/dev/vdd"], check=True)
    refused("degraded")
    subprocess.run(["umount", "/mnt/md0"], check=True)
    subprocess.run(["mdadm", "--stop", "/dev/md0"], check=True)
    assert "There is no /dev/md0" in autotune("run", "/dev/md0", state=state).stderr
    subprocess.run(["mdadm", "--zero-superblock", "/dev/vda", "/dev/vdb"], check=True)
    command = "mdadm --create /dev/md0 --run --level=0 --raid-devices=2 /dev/vda /dev/vdb"
    subprocess.run(command.split(), check=True)
    refused("no redundancy")
