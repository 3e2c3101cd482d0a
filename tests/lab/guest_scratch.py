"""Where the scratch file may be, on a RAID5 with a filesystem in the lab; `test_run.py` runs this
there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from guest import FAST, autotune, autotune_json, running, start, wait_until

from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.workload import Load

MOUNT = Path("/mnt/md0")


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    path = tmp_path / "fast.toml"
    path.write_text(FAST)
    return ("run", "/dev/md0", "--workload", path)


def test_on_a_full_filesystem_what_writes_is_left_out(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    command = ["fallocate", "-l", str(shutil.disk_usage(MOUNT).free - (99 << 20)), MOUNT / "full"]
    subprocess.run(command, check=True)
    plan = autotune_json(*words, "--dry-run", state=tmp_path)
    assert list(plan["phases"]) == ["resync"]
    assert plan["left_out"] == ["write"]
    assert any("What writes cannot be measured" in note for note in plan["notes"])
    doctor = autotune("doctor", "/dev/md0", state=tmp_path)
    assert doctor.returncode == 0
    assert "What writes cannot be measured" in doctor.stdout
    named = autotune(*words, "--scratch", MOUNT, state=tmp_path)
    assert named.returncode == 1
    assert "free some space" in named.stderr
    (MOUNT / "full").unlink()


def test_fio_writes_to_the_scratch_file_whatever_its_folder_is_called() -> None:
    """fio takes what follows # or ; in a name for something else."""
    for sign in "#;:":
        victim, folder = MOUNT / "disk.img", MOUNT / f"disk.img{sign}new"
        folder.mkdir()
        victim.write_bytes(b"v" * (1 << 20))
        (folder / "scratch").write_bytes(b"s" * (1 << 20))
        job = Job("load", Load(rw="write", block_kib=64), Target(folder / "scratch", 1 << 20))
        with Fio([job], 5, 1) as fio:
            wait_until(lambda: bool(fio.poll(1)) and fio.written > 0, what="a write")
        assert victim.read_bytes() == b"v" * (1 << 20)
        assert (folder / "scratch").read_bytes() != b"s" * (1 << 20)
        assert {path.name for path in folder.iterdir()} == {"scratch"}
        shutil.rmtree(folder)
        victim.unlink()


def test_a_filesystem_that_another_one_hides_is_not_taken_for_the_arrays(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "none", MOUNT], check=True)
    try:
        plan = autotune_json(*words, "--dry-run", state=tmp_path)
        named = autotune(*words, "--scratch", MOUNT, state=tmp_path)
    finally:
        subprocess.run(["umount", MOUNT], check=True)
    assert (plan["scratch"], plan["left_out"]) == (None, ["write"])
    assert "is not on /dev/md0" in named.stderr


def test_a_scratch_folder_below_somebody_elses_is_refused(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    (MOUNT / "bob/roots").mkdir(parents=True)
    os.chown(MOUNT / "bob", 1000, 1000)
    done = autotune(*words, "--scratch", MOUNT / "bob/roots", state=tmp_path)
    shutil.rmtree(MOUNT / "bob")
    assert done.returncode == 1
    assert "Others than root could put another file in the place" in done.stderr
    assert f"{MOUNT}/bob belongs to the user" in done.stderr


def test_a_folder_that_nothing_can_be_removed_from_gets_no_scratch_file(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    """As the root of a volume for logs, or for backups."""
    for flag, word in (("a", "append-only"), ("i", "immutable")):
        subprocess.run(["chattr", f"+{flag}", MOUNT], check=True)
        try:
            plan = autotune_json(*words, "--dry-run", state=tmp_path)
            named = autotune(*words, "--scratch", MOUNT, state=tmp_path)
        finally:
            subprocess.run(["chattr", f"-{flag}", MOUNT], check=True)
        assert (plan["scratch"], plan["left_out"]) == (None, ["write"])
        assert named.returncode == 1
        assert f"{MOUNT} is {word}" in named.stderr
        assert f"chattr -{flag} {MOUNT}" in named.stderr


def test_where_the_filesystem_is_a_users_reads_are_measured_all_the_same(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    """As a share's. A folder of root's that is mounted elsewhere is as good as another one."""
    elsewhere, inside = tmp_path / "elsewhere", MOUNT / "roots"
    elsewhere.mkdir()
    inside.mkdir()
    os.chown(MOUNT, 1000, 1000)
    try:
        plan = autotune_json(*words, "--dry-run", state=tmp_path)
        doctor = autotune("doctor", "/dev/md0", state=tmp_path)
        subprocess.run(["mount", "--bind", inside, elsewhere], check=True)
        bound = autotune_json(*words, "--dry-run", state=tmp_path)
        subprocess.run(["umount", elsewhere], check=True)
    finally:
        os.chown(MOUNT, 0, 0)
        inside.rmdir()
    assert (plan["scratch"], plan["left_out"]) == (None, ["write"])
    assert doctor.returncode == 0
    assert f"{MOUNT} belongs to the user" in " ".join(doctor.stdout.split())
    assert Path(bound["scratch"]).parents[1] == elsewhere


def test_a_kill_leaves_no_scratch_file_in_a_folder_that_is_mounted_elsewhere_in_it(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    """A bind mount of a folder of the same filesystem is one that `Path.is_mount` does not see."""
    inside, bound = MOUNT / "srv", MOUNT / "pub"
    for folder in (inside, bound):
        folder.mkdir()
    subprocess.run(["mount", "--bind", inside, bound], check=True)
    try:
        process = start(*words, "--scratch", bound, state=tmp_path)
        wait_until(lambda: bool(list(inside.glob(".autotune*"))), 60, "the scratch file")
        wait_until(lambda: bool(running("fio")), 60, "fio")
        process.kill()
        process.wait()
        wait_until(lambda: not list((tmp_path / "journal").glob("*.jsonl")), 60, "the guardian")
        assert not list(inside.glob(".autotune*"))
    finally:
        subprocess.run(["umount", bound], check=True)
        for folder in (inside, bound):
            shutil.rmtree(folder)
