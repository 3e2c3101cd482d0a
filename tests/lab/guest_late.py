"""A store that comes through long after it was given up, since a disk hangs. In design.toml."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import autotune, read, start, wait_until

DISKS = ("vda", "vdb", "vdc", "vdd")
THREADS = Path("/sys/block/md0/md/group_thread_cnt")
PROFILE = {
    "schema_version": 1,
    "name": "by-hand",
    "created": "2026-01-01T00:00:00Z",
    "proven_on": {
        **{"level": "raid5", "members": 4, "chunk_kib": 64},
        **{"media": "ssd", "kernel": "6.1"},
    },
    "workload": "rebuild",
    "knobs": {"group_thread_cnt": 2},
    "before": {},
    "ram_bytes": 1,
    "ram_budget_bytes": 2,
    "evidence": {"gain": 1.5, "low": 1.4, "high": 1.6, "trials": 9, "seconds": 9, "figures": {}},
}


def sh(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture
def writer() -> Iterator[None]:
    """An array on disks that can be made to hang, with somebody who writes to it."""
    for disk in DISKS:
        table = f"0 {read(Path('/sys/block') / disk / 'size')} linear /dev/{disk} 0"
        sh("dmsetup", "create", f"slow-{disk}", "--table", table)
    members = [f"/dev/mapper/slow-{disk}" for disk in DISKS]
    how = ("--level=5", "--chunk=64", "--bitmap=none", "--raid-devices=4", "--assume-clean")
    sh("mdadm", "--create", "/dev/md0", "--run", *how, *members)
    # Two, so that a write is on its way at each moment.
    write = "while :; do dd if=/dev/zero of=/dev/md0 bs=64k count=400 oflag=direct; done"
    process = subprocess.Popen(
        f"({write}) & {write}", shell=True, start_new_session=True, stderr=subprocess.DEVNULL
    )
    yield
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(_is_stopped, 60, "the array's end")
    for member in members:
        sh("mdadm", "--zero-superblock", member)
        sh("dmsetup", "remove", Path(member).name)


def _is_stopped() -> bool:
    return not subprocess.run(["mdadm", "--stop", "/dev/md0"], check=False).returncode


@pytest.mark.parametrize("killed", [False, True])
def test_it_is_undone_once_it_has_come_through(writer: None, tmp_path: Path, killed: bool) -> None:
    profile, state = tmp_path / "profile.json", tmp_path / "state"
    profile.write_text(json.dumps(PROFILE))
    tuner = start("apply", profile, "/dev/md0", state=state)
    wait_until(lambda: list((state / "journal").glob("*")) != [], 60, "its journal")
    sh("dmsetup", "suspend", "--noflush", "--nolockfs", "slow-vda")
    try:
        (path,) = (state / "journal").glob("*")
        wait_until(lambda: '"write"' in path.read_text(), 60, "its store")
        if killed:
            os.kill(tuner.pid, signal.SIGKILL)
        else:
            # Longer than a store is waited for, and its restore.
            assert tuner.stderr is not None
            assert any("hangs; a process of autotune waits" in line for line in tuner.stderr)
        assert read(THREADS) == "0"
        assert path.exists()
    finally:
        sh("dmsetup", "resume", "slow-vda")
    tuner.wait(60)
    wait_until(lambda: not path.exists(), 60, "the guardian")
    assert read(THREADS) == "0"
    assert autotune("restore", state=state).returncode == 0
    assert read(THREADS) == "0"
