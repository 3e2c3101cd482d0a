"""Profiles on two arrays of the same disks, on the lab `partitions.toml`: whichever is undone last,
all is as it was. `test_run.py` runs this there."""

import itertools
import json
import random
import subprocess
from pathlib import Path

import pytest
from guest import autotune, autotune_json, knob_files

ARRAYS = ("/dev/md0", "/dev/md1")
DISKS = ("vda", "vdb")
STEPS = [(array, name) for array in ARRAYS for name in ("mq-deadline", "bfq", "kyber")]
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


def apply(array: str, scheduler: str, state: Path) -> None:
    on = {"level": "raid1", "members": 2, "chunk_kib": 0, "media": "ssd", "kernel": "6.1"}
    knobs = {"scheduler": scheduler}
    profile = state.with_suffix(".json")
    profile.write_text(json.dumps({**EXAMPLE, "proven_on": on, "knobs": knobs, "before": knobs}))
    autotune_json("apply", profile, array, state=state)


@pytest.mark.parametrize("number", range(3))
def test_profiles_in_turn(tmp_path: Path, number: int) -> None:
    state, before = tmp_path / "state", knob_files()
    sequence = random.Random(number).choice(list(itertools.product(STEPS, repeat=3)))
    for array, scheduler in (*sequence, (ARRAYS[0], "bfq"), (ARRAYS[1], "kyber")):
        apply(array, scheduler, state)
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
