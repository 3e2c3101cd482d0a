"""A recovery in the middle of a run, of the array or of one beside it, and names that change hands;
in the lab `neighbours.toml`; `test_run.py` runs this there, in this order."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guest import Follower, autotune, guardians, knob_files, read, running, start, wait_until
from partitioned import clear, create, md, mdadm, partition_disks, parts, slow_down, wait_idle

from autotune.checking.bounded_check import completed
from autotune.errors import StoppedError
from autotune.measure.check import Check
from autotune.measure.workload import load_workload
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system.array import find_array
from autotune.system.mdstat import sync_position_kib
from autotune.tuning.preparation import Options
from autotune.tuning.run import run

CHECKED = """
name = "checked"
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 50 }
min_seconds = SECONDS
max_seconds = SECONDS
"""
PROFILE = """{"schema_version": 1, "name": "by-hand", "created": "2026-01-01T00:00:00Z",
"proven_on": {"level": "raid5", "members": 4, "chunk_kib": 64, "media": "ssd", "kernel": "6.1"},
"workload": "rebuild", "knobs": {"stripe_cache_size": 512, "sync_speed_max": 150000,
"scheduler": "none"}, "before": {}, "ram_bytes": 1, "ram_budget_bytes": 2,
"evidence": {"gain": 1.5, "low": 1.4, "high": 1.6, "trials": 9, "seconds": 9, "figures": {}}}"""
SCHEDULER = Path("/sys/block/vda/queue/scheduler")


class Clock(Follower):
    """Notes that a phase is at work."""

    def __init__(self, after_trial: Callable[[], None] = lambda: None) -> None:
        super().__init__(after_trial)
        self.phase = threading.Event()

    def progress(
        self, what: str, share: float, left_s: float | None, most_s: float | None = None
    ) -> None:
        if what.startswith("Trial") and share > 0.05:
            self.phase.set()


@pytest.fixture(scope="module", autouse=True)
def disks() -> None:
    partition_disks(200)


@pytest.fixture(autouse=True)
def machine(disks: None) -> None:
    """md0 and md1, which have the same knobs, share three disks."""
    clear()
    create("md0", 5, parts(1, "abcd"), "--chunk=64")
    create("md1", 5, parts(2, "bcd"), "--chunk=64")


@pytest.fixture
def workload(tmp_path: Path) -> Callable[[int], str]:
    def write(seconds: int) -> str:
        path = tmp_path / "checked.toml"
        path.write_text(CHECKED.replace("SECONDS", str(seconds)))
        return str(path)

    return write


def options(workload: str) -> Options:
    return Options("/dev/md0", load_workload(workload), strategy="random", time_s=400)


def provoked(workload: str, state: Path, provoke: Callable[[], None]) -> str:
    """What ends a run in whose first trial something happens."""
    clock = Clock()

    def wait_and_provoke() -> None:
        clock.phase.wait(120)
        provoke()

    thread = threading.Thread(target=wait_and_provoke)
    thread.start()
    with pytest.raises(StoppedError) as caught:
        run(options(workload), state, clock)
    thread.join()
    return str(caught.value)


@pytest.fixture
def slow_check() -> None:
    """So that there is time to do something in the middle of one."""
    (md("md0") / "sync_speed_max").write_text("10000")


def replace_a_disk() -> None:
    """Well into the check, by one that takes long to be filled."""
    wait_until(lambda: checked() > 0.2, 60, "the check to get on")
    slow_down("e", 20)
    mdadm("/dev/md0", "--add", "/dev/vde1")
    mdadm("/dev/md0", "--fail", "/dev/vdd1")


def checked() -> float:
    """The share of the array's check that is done, as far as a cut would note it."""
    done, _, total = read(md("md0") / "sync_completed").partition(" / ")
    return int(done) / int(total) if total else 0.0


def bounds() -> tuple[str, str]:
    return read(md("md0") / "sync_min"), read(md("md0") / "sync_max")


@pytest.mark.usefixtures("slow_check")
def test_what_a_recovery_in_a_check_keeps_from_going_back_goes_back_after_it(
    workload: Callable[[int], str], tmp_path: Path
) -> None:
    before = knob_files()
    said = provoked(workload(20), tmp_path, replace_a_disk)
    assert "degraded" in said or "a recovery of /dev/md0" in said
    assert read(md("md0") / "sync_action") == "recover"
    assert bounds()[0] != "0"
    guard = start("guard", "/dev/md0", "--p99-ceiling", "90ms", state=tmp_path)
    doctor = autotune("doctor", "/dev/md0", state=tmp_path)
    assert "goes back by itself once the recovery has ended" in doctor.stdout
    restored = autotune("restore", state=tmp_path)
    assert restored.returncode == 0, restored.stderr
    assert "once the recovery has ended" in restored.stdout
    time.sleep(5)
    slow_down("e", 1)
    _, errors = guard.communicate(timeout=120)
    assert guard.returncode == 0, errors
    wait_idle("md0")
    wait_until(lambda: bounds() == ("0", "max"), 60, f"the bounds, which are {bounds()}")
    wait_until(lambda: not list((tmp_path / "journal").glob("*")), what="the journal to go")
    wait_until(lambda: not guardians(), what="the guardian to end")
    after = knob_files()
    assert {k: v for k, v in before.items() if k in after and after[k] != v} == {}


@pytest.mark.slow
@pytest.mark.usefixtures("slow_check")
def test_the_weekly_pass_does_it_if_nobody_is_left_to(
    workload: Callable[[int], str], tmp_path: Path
) -> None:
    provoked(workload(20), tmp_path, replace_a_disk)
    for process in guardians():
        os.kill(process, signal.SIGKILL)
    slow_down("e", 1)
    wait_idle("md0")
    assert bounds()[0] != "0"
    refusing = autotune("doctor", "/dev/md0", state=tmp_path)
    assert "autotune restore" in refusing.stdout
    assert autotune("retune", "--all", state=tmp_path).returncode == 0
    assert bounds() == ("0", "max")
    assert not list((tmp_path / "journal").glob("*"))


def test_a_neighbours_recovery_ends_a_run_at_once(
    workload: Callable[[int], str], tmp_path: Path
) -> None:
    before = knob_files()

    def neighbour() -> None:
        mdadm("/dev/md1", "--add", "/dev/vda2")
        mdadm("/dev/md1", "--replace", "/dev/vdc2")

    said = provoked(workload(20), tmp_path, neighbour)
    assert "/dev/md1 shares disks with /dev/md0" in said
    assert knob_files() == before
    assert not running("fio")
    wait_idle("md1")
    assert not list((tmp_path / "journal").glob("*"))


@pytest.mark.slow
def test_a_guard_holds_no_check_back_that_a_neighbours_recovery_waits_for(tmp_path: Path) -> None:
    limit = Path("/proc/sys/dev/raid/speed_limit_max")
    limit.write_text("1500")
    (md("md0") / "sync_action").write_text("check")
    guard = start("guard", "/dev/md0", "--policy", "foreground", state=tmp_path)
    wait_until(lambda: list((tmp_path / "journal").glob("*")) != [], 100, "the guard")
    mdadm("/dev/md1", "--fail", "/dev/vdd2", "--remove", "/dev/vdd2")
    mdadm("/dev/md1", "--add", "/dev/vda2")
    output, errors = guard.communicate(timeout=60)
    limit.write_text("200000")
    assert guard.returncode == 0, errors
    assert "since the recovery of /dev/md1 waits for it" in errors
    assert "at full speed again" in output
    assert read(md("md0") / "sync_action") == "check"
    assert read(md("md1") / "sync_completed") == "delayed"


PLACE = "65536"


def check_both() -> None:
    """As somebody does who ends the check of md0, and has md1 checked first."""
    (md("md1") / "sync_speed_max").write_text("2000")
    (md("md0") / "sync_action").write_text("idle")
    (md("md1") / "sync_action").write_text("check")
    while not completed(read(md("md1") / "sync_completed")):
        time.sleep(0.001)
    for name, text in (("sync_max", "max"), ("sync_min", PLACE), ("sync_action", "check")):
        (md("md0") / name).write_text(text)


def their_check() -> tuple[str, ...]:
    return tuple(read(md("md0") / n) for n in ("sync_action", "sync_completed", "sync_min"))


@pytest.mark.usefixtures("slow_check")
def test_a_run_leaves_somebodys_check_alone_that_waits_for_an_array_beside(
    workload: Callable[[int], str], tmp_path: Path
) -> None:
    provoked(workload(30), tmp_path, check_both)
    assert their_check() == ("check", "delayed", PLACE)


def test_a_check_leaves_somebodys_alone_that_waits_for_an_array_beside(tmp_path: Path) -> None:
    (md("md0") / "sync_speed_max").write_text("10000")
    check = start("check", "/dev/md0", "--policy", "rebuild", state=tmp_path)
    wait_until(lambda: checked() > 0.1, 60, "the check to get on")
    check_both()
    # It goes on for as long as he has it wait, and then after his.
    time.sleep(3)
    check.send_signal(signal.SIGINT)
    check.communicate(timeout=60)
    assert their_check() == ("check", "delayed", PLACE)


def swap_names() -> None:
    """What was md0 is md1, and the other way round."""
    mdadm("--stop", "/dev/md0")
    mdadm("--stop", "/dev/md1")
    mdadm("--assemble", "/dev/md0", *parts(2, "bcd"))
    mdadm("--assemble", "/dev/md1", *parts(1, "abcd"))


@pytest.mark.slow
def test_an_array_that_takes_over_the_name_is_not_tuned(
    workload: Callable[[int], str], tmp_path: Path
) -> None:
    found: dict[str, str] = {}

    def swap() -> None:
        if not found:
            swap_names()
            (md("md0") / "sync_speed_max").write_text("12345")
            found.update(knob_files())

    with pytest.raises(StoppedError, match="/dev/md0 was stopped"):
        run(options(workload(3)), tmp_path, Follower(swap))
    assert knob_files() == found
    assert not list((tmp_path / "journal").glob("*"))


@pytest.mark.slow
def test_the_script_undoes_nothing_of_an_array_that_took_the_name(
    tmp_path: Path,
) -> None:
    profile, out = tmp_path / "profile.json", tmp_path / "out"
    profile.write_text(PROFILE)
    done = autotune("export", profile, "--format", "shell", "--out", out, state=tmp_path)
    assert done.returncode == 0, done.stderr
    (script,) = out.glob("*.sh")
    before = SCHEDULER.read_text()
    subprocess.run([script, "apply", "/dev/md0"], check=True)
    assert "[none]" in SCHEDULER.read_text()
    swap_names()
    (md("md0") / "sync_speed_max").write_text("12345")
    found = {name: knob_files(name) for name in ("md0", "md1")}
    subprocess.run([script, "undo", "/dev/md1"], check=True)
    assert SCHEDULER.read_text() == before
    for name, files in found.items():
        now = knob_files(name)
        assert {k: v for k, v in files.items() if "/md/" in k and now[k] != v} == {}


def test_a_restore_leaves_an_array_that_took_the_name_alone(
    tmp_path: Path,
) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(PROFILE)
    before = SCHEDULER.read_text()
    assert autotune("apply", profile, "/dev/md0", state=tmp_path).returncode == 0
    swap_names()
    (md("md0") / "sync_speed_max").write_text("12345")
    found = {name: knob_files(name) for name in ("md0", "md1")}
    done = autotune("restore", "/dev/md1", state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SCHEDULER.read_text() == before
    for name, files in found.items():
        now = knob_files(name)
        assert {k: v for k, v in files.items() if "/md/" in k and now[k] != v} == {}


@pytest.mark.slow
def test_what_is_applied_after_a_reassembly_can_be_undone(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(PROFILE)
    before = knob_files()
    assert autotune("apply", profile, "/dev/md0", state=tmp_path).returncode == 0
    mdadm("--stop", "/dev/md0")
    mdadm("--assemble", "/dev/md0", *parts(1, "abcd"))
    (md("md0") / "stripe_cache_size").write_text("384")
    assert autotune("apply", profile, "/dev/md0", state=tmp_path).returncode == 0
    assert autotune("restore", "/dev/md0", state=tmp_path).returncode == 0
    assert read(md("md0") / "stripe_cache_size") == "384"
    (md("md0") / "stripe_cache_size").write_text("256")
    assert knob_files() == before


@pytest.mark.slow
def test_a_check_of_a_raid10_never_goes_back(tmp_path: Path) -> None:
    clear()
    create("md0", 5, parts(1, "abcd"))
    create("md1", 10, parts(2, "abcd"))
    array = find_array("md1")
    path = journal_path(tmp_path, array.uuid)
    files = [array.md / name for name in ("sync_min", "sync_max")]
    journal, seen, ends = new_journal(path, array.uuid, array.device, files), [0], 0
    size_kib = array.size_bytes // 1024
    deadline = time.monotonic() + 60
    with Check("md1", journal) as check:
        while ends < 2 and time.monotonic() < deadline:
            at = sync_position_kib(Path("/proc/mdstat").read_text(), "md1")
            seen.append(check.done_bytes() // 1024)
            ends = seen[-1] // size_kib
            assert at is None or at[1] == size_kib
            time.sleep(0.02)
    journal.close()
    assert seen == sorted(seen)
    assert ends == 2


def test_the_users_of_the_array_beside_slow_down_a_guarded_check(tmp_path: Path) -> None:
    """They have the same disks, so a sync of this one is as much in their way."""
    words = ["--name=users", "--filename=/dev/md1", "--rw=randread", "--bs=4k", "--direct=1"]
    words += ["--rate_iops=50", "--time_based", "--runtime=60", "--readonly"]
    users = subprocess.Popen(["fio", *words], stdout=subprocess.DEVNULL)
    try:
        # No faster, or it is over before anything is seen.
        (md("md0") / "sync_speed_max").write_text("3000")
        (md("md0") / "sync_action").write_text("check")
        guard = start("guard", "/dev/md0", "--policy", "foreground", "--json", state=tmp_path)
        assert guard.stdout is not None
        seen = []
        for line in guard.stdout:
            window = json.loads(line)
            if window.get("kind") == "window":
                seen.append((window["source"], window["foreground_iops"]))
            if len(seen) == 3:
                guard.send_signal(signal.SIGINT)
        guard.wait(60)
    finally:
        users.kill()
        users.wait()
        (md("md0") / "sync_action").write_text("idle")
        (md("md0") / "sync_speed_max").write_text("system")
    source, iops = seen[-1]
    assert source != "none"
    assert iops > 10


def read_auto() -> None:
    Path("/sys/module/md_mod/parameters/start_ro").write_text("1")
    mdadm("--stop", "/dev/md0")
    mdadm("--assemble", "/dev/md0", *parts(1, "abcd"))
    Path("/sys/module/md_mod/parameters/start_ro").write_text("0")
    assert read(md("md0") / "array_state") == "read-auto"


@pytest.mark.slow
def test_an_array_that_waits_for_its_first_write_can_be_tuned(
    workload: Callable[[int], str], tmp_path: Path
) -> None:
    read_auto()
    before = knob_files()

    def enough() -> None:
        raise StoppedError("Enough.")

    with pytest.raises(StoppedError, match="Enough"):
        run(options(workload(3)), tmp_path, Follower(enough))
    assert read(md("md0") / "array_state") in ("clean", "active")
    assert knob_files() == before


def test_but_not_if_that_starts_a_resync(tmp_path: Path) -> None:
    mdadm("--stop", "/dev/md0")
    words = ("--run", "--level=5", "--raid-devices=4", "--force", "--chunk=64")
    mdadm("--create", "/dev/md0", *words, *parts(1, "abcd"))
    read_auto()
    assert "resync=PENDING" in Path("/proc/mdstat").read_text()
    done = autotune("doctor", "/dev/md0", state=tmp_path)
    assert done.returncode == 1
    assert "mdadm --readwrite /dev/md0" in done.stdout
