"""Runs on a RAID5 with a filesystem in the lab; `test_run.py` runs this there."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from guest import FAST, autotune, autotune_json, knob_files

MOUNT = Path("/mnt/md0")


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


def test_a_run_writes_nothing_outside_its_scratch_file(state: Path, tmp_path: Path) -> None:
    block = os.urandom(1 << 20)
    with (MOUNT / "large").open("wb") as file:
        for _ in range(300):
            file.write(block)
    (MOUNT / "deep/er").mkdir(parents=True)
    (MOUNT / "deep/er/small").write_text("small")
    workload = tmp_path / "fast.toml"
    workload.write_text(FAST)
    before, knobs = checksums(), knob_files()
    done = autotune_json(
        *("run", "/dev/md0", "--workload", workload, "--strategy", "random"),
        *("--trials", 2, "--time", "2min", "--ram-budget", "96MiB"),
        state=state,
    )
    assert done["trials"] >= 3
    assert done["bytes_written"] > 0
    assert knob_files() == knobs
    assert checksums() == before
    assert {path.name for path in MOUNT.iterdir()} == {"large", "deep", "lost+found"}


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
