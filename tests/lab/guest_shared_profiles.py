"""Profiles on two arrays of the same disks, on the lab `partitions.toml`: a disk has the settings
of one of them. `test_run.py` runs this there."""

import fcntl
import json
import signal
import subprocess
from pathlib import Path

import pytest
from guest import FAST, autotune, autotune_json, knob_files, signal_guardians, start, wait_until

ARRAYS = ("/dev/md0", "/dev/md1")
DISKS = ("vda", "vdb")
EXAMPLE = json.loads(Path("examples/profile.json").read_text())


def run(*words: str, text: str = "") -> None:
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


def queue(disk: str, file: str) -> Path:
    return Path("/sys/block", disk, "queue", file)


@pytest.fixture(scope="module", autouse=True)
def arrays() -> None:
    """What an administrator has set of the disks is neither the kernel's nor ours."""
    for disk in DISKS:
        run("sfdisk", "-q", f"/dev/{disk}", text="size=256M\n,\n")
    for array, number in zip(ARRAYS, (1, 2), strict=True):
        members = [f"/dev/{disk}{number}" for disk in DISKS]
        create = ("mdadm", "--create", array, "--run", "--assume-clean", "--bitmap=none")
        run(*create, "--level=1", "--raid-devices=2", *members)
    for disk in DISKS:
        queue(disk, "scheduler").write_text("mq-deadline")
        queue(disk, "nr_requests").write_text("100")
        queue(disk, "iosched/read_expire").write_text("250")


def profile(state: Path, **knobs: str | int) -> Path:
    on = {"level": "raid1", "members": 2, "chunk_kib": 0, "media": "ssd", "kernel": "6.1"}
    path = state.with_suffix(".json")
    path.write_text(json.dumps({**EXAMPLE, "proven_on": on, "knobs": knobs, "before": knobs}))
    return path


def apply(array: str, scheduler: str, state: Path) -> None:
    autotune_json("apply", profile(state, scheduler=scheduler), array, state=state)


def schedulers() -> set[str]:
    return {
        queue(disk, "scheduler").read_text().partition("[")[2].partition("]")[0] for disk in DISKS
    }


def test_the_second_array_leaves_the_disks_to_the_first(tmp_path: Path) -> None:
    """Until the profile there is undone; then it is the other way round."""
    before = knob_files()
    for first, second in (ARRAYS, ARRAYS[::-1]):
        state = tmp_path / Path(first).name
        apply(first, "bfq", state)
        refused = autotune("apply", profile(state, scheduler="kyber"), second, state=state)
        assert refused.returncode == 1
        assert f"Nothing is left to apply to {second}." in refused.stderr
        assert f"`autotune restore {first} --state-dir {state}` ends that." in refused.stderr
        both = profile(state, scheduler="kyber", read_ahead_kb=1024)
        done = autotune("apply", both, second, state=state)
        assert done.returncode == 0, done.stderr
        assert "scheduler: left as found" in done.stderr
        assert queue(Path(second).name, "read_ahead_kb").read_text() == "1024\n"
        assert schedulers() == {"bfq"}
        dry = autotune("run", second, "--dry-run", state=state)
        assert "scheduler: left as found" in dry.stdout + dry.stderr
        imported = autotune(
            "import", both, "--device", second, "--no-verify", "--dry-run", state=state
        )
        assert "scheduler: left as found" in imported.stdout + imported.stderr
        assert autotune("restore", first, state=state).returncode == 0
        assert schedulers() == {"mq-deadline"}
        done = autotune("apply", both, second, state=state)
        assert "left as found" not in done.stderr
        assert schedulers() == {"kyber"}
        done = autotune("restore", "--all", state=state)
        assert done.returncode == 0, done.stderr
        assert "somebody else" not in done.stdout
        assert knob_files() == before
        assert queue(DISKS[0], "iosched/read_expire").read_text().strip() == "250"


def test_another_state_folder_finds_what_is_in_force_though_one_that_leaves_nothing_came_between(
    tmp_path: Path,
) -> None:
    before, profile = knob_files(), tmp_path / "one.json"
    apply(ARRAYS[0], "bfq", tmp_path / "one")
    autotune("check", ARRAYS[0], "--policy", "rebuild", state=tmp_path / "two")
    done = autotune("apply", profile, ARRAYS[0], state=tmp_path / "two")
    assert done.returncode == 1
    assert "another state folder is in force" in done.stderr
    assert autotune("restore", "--all", state=tmp_path / "one").returncode == 0
    assert knob_files() == before


def test_a_profile_stays_until_what_a_killed_run_has_set_over_it_is_back(tmp_path: Path) -> None:
    """Undone before, it would take the run's values for somebody else's."""
    state, before, workload = tmp_path / "state", knob_files(), tmp_path / "fast.toml"
    workload.write_text(FAST)
    autotune_json("apply", profile(state, read_ahead_kb=1024), ARRAYS[0], state=state)
    applied = knob_files()
    words = ("--workload", workload, "--knobs", "read_ahead_kb,sync_speed_min", "--trials", 8)
    tuner = start("run", ARRAYS[0], *words, "--eager", state=state)

    def tries() -> bool:
        return queue("md0", "read_ahead_kb").read_text() != "1024\n"

    wait_until(tries, 120, "a trial")
    signal_guardians(signal.SIGSTOP)
    tuner.kill()
    tuner.wait(60)
    (journal,) = (state / "journal").glob("*.jsonl")
    with journal.open() as held:
        # As its guardian does while it puts back.
        fcntl.flock(held, fcntl.LOCK_EX)
        for what in (ARRAYS[0], "--all"):
            refused = autotune("restore", what, state=state)
            assert refused.returncode == 1
            assert "stays for now: what a run has set over it" in refused.stderr
            assert tries()
    done = autotune("restore", state=state)
    signal_guardians(signal.SIGCONT)
    assert done.returncode == 0, done.stderr
    assert knob_files() == applied
    done = autotune("restore", ARRAYS[0], state=state)
    assert done.returncode == 0, done.stderr
    assert "somebody else" not in done.stdout
    assert knob_files() == before


def test_the_disks_of_an_array_that_was_stopped_get_back_what_they_had(tmp_path: Path) -> None:
    state, before = tmp_path / "state", knob_files()
    apply(ARRAYS[0], "bfq", state)
    run("mdadm", "--stop", ARRAYS[0])
    told = autotune("status", state=state)
    assert told.returncode == 1
    assert "does not run, but its disks still have" in told.stdout
    assert autotune("restore", "--all", state=state).returncode == 0
    assert autotune("status", state=state).returncode == 0
    run("mdadm", "--assemble", ARRAYS[0], *(f"/dev/{disk}1" for disk in DISKS))
    assert knob_files() == before
