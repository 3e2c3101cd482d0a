"""Where a scratch file would do harm, on real LVM on raid5-ssd; `test_run.py` runs this there."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import FAST, autotune, autotune_json, guardians, knob_files, running, start, wait_until
from volumes import make_ext4, make_group, make_snapshot, make_thin, make_volume, sh, used

from autotune.lab.guest.system import load_modules
from autotune.safety import separate_process
from autotune.system import programs

DEVICE = "/dev/md0"
MOUNT = Path("/mnt/here")
WITHIN_S = 25.0
"""A hanging write is not waited for; the guest takes seconds to start the guardian's Python."""


@pytest.fixture(scope="module", autouse=True)
def group() -> Iterator[None]:
    load_modules(("dm-writecache", "dm-mirror", "loop", "btrfs"))
    MOUNT.mkdir(parents=True)
    make_group()
    yield
    sh("vgremove", "-q", "-f", "shelf")


@contextlib.contextmanager
def mounted(device: object, kind: str = "ext4") -> Iterator[None]:
    if kind == "ext4":
        make_ext4(str(device))
    else:
        sh(f"mkfs.{kind}", "-q", "-f", device)
    sh("mount", device, MOUNT)
    try:
        yield
    finally:
        # What hung may just be ending.
        wait_until(lambda: not subprocess.run(["umount", MOUNT], check=False).returncode)


@pytest.fixture
def home() -> Iterator[str]:
    device = make_volume("home", 1500)
    with mounted(device):
        yield device
    sh("lvremove", "-q", "-f", "shelf/home")


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    path = tmp_path / "fast.toml"
    path.write_text(FAST)
    return ("run", DEVICE, "--workload", path, "--strategy", "random", "--p99-ceiling", "5s")


@contextlib.contextmanager
def under_way(state: Path, *words: object, until: str = "fio") -> Iterator[subprocess.Popen[str]]:
    """A run of which fio runs."""
    process = start(*words, state=state)
    wait_until(lambda: bool(running(until)) or process.poll() is not None, 90, until)
    try:
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def ended(process: subprocess.Popen[str], timeout_s: float = 60) -> str:
    """What it said once it has ended, in time."""
    try:
        return process.communicate(timeout=timeout_s)[1]
    except subprocess.TimeoutExpired:
        pytest.fail(f"not ended within {timeout_s} s")


def interrupted(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGINT)
    return ended(process)


def left_out(state: Path, words: tuple[object, ...], reason: str) -> None:
    """Nothing is written unasked, and all that could be asked says why."""
    plan = autotune_json(*words, "--dry-run", state=state)
    assert (plan["scratch"], plan["left_out"]) == (None, ["write"])
    assert any(reason in note for note in plan["notes"]), plan["notes"]
    assert reason in autotune("doctor", DEVICE, state=state).stdout


def barred(state: Path, words: tuple[object, ...], reason: str) -> None:
    left_out(state, words, reason)
    named = autotune(*words, "--scratch", MOUNT, state=state)
    assert named.returncode == 1
    assert reason in named.stderr


def test_a_snapshot_outlives_a_run(home: str, tmp_path: Path, words: tuple[object, ...]) -> None:
    make_snapshot(100)
    before = used("shelf-backup")
    with under_way(tmp_path, *words) as process:
        interrupted(process)
    sh("sync")
    after = used("shelf-backup")
    assert after != "Invalid"
    # The filesystem's own, a few blocks.
    assert abs(int(after.split("/")[0]) - int(before.split("/")[0])) < 8192
    barred(tmp_path, words, "has a snapshot")
    # The snapshot is no place either.
    sh("umount", MOUNT)
    sh("mount", "/dev/shelf/backup", MOUNT)
    barred(tmp_path, words, "is itself a snapshot")
    sh("umount", MOUNT)
    sh("mount", home, MOUNT)


@pytest.mark.slow
def test_a_snapshot_taken_meanwhile_ends_the_run(
    home: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    knobs = knob_files()
    with under_way(tmp_path, *words) as process:
        assert list(MOUNT.glob(".autotune-*"))
        make_snapshot(200)
        assert "has a snapshot" in ended(process)
    assert used("shelf-backup") != "Invalid"
    assert not list(MOUNT.glob(".autotune-*"))
    assert knob_files() == knobs


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[str]:
    """One in the group that is not on the array."""
    file = tmp_path / "disk"
    file.touch()
    os.truncate(file, 160 << 20)
    device = sh("losetup", "--find", "--show", file).strip()
    sh("vgextend", "-q", "-y", "shelf", device)
    yield device
    sh("lvremove", "-q", "-f", "shelf/home")
    sh("vgreduce", "-q", "shelf", device)
    sh("losetup", "--detach", device)


def test_a_filesystem_that_is_moved_off_the_array_meanwhile_ends_the_run(
    other_disk: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    knobs = knob_files()
    device = make_volume("home", 1500)
    with mounted(device):
        with under_way(tmp_path / "state", *words) as process:
            sh("pvmove", "-q", "-i", "1", f"{DEVICE}:0-15", other_disk)
            assert "is not md0 alone" in ended(process)
        assert not list(MOUNT.glob(".autotune-*"))
    assert knob_files() == knobs


@contextlib.contextmanager
def thin(size_mib: int) -> Iterator[None]:
    """An overcommitted pool with two volumes, a filesystem on the first."""
    make_thin(size_mib, "one", "other")
    try:
        with mounted("/dev/shelf/one"):
            yield
    finally:
        sh("lvremove", "-q", "-f", "shelf/pool")


def fill_other(size_mib: int) -> None:
    sh("dd", "if=/dev/zero", "of=/dev/shelf/other", "bs=1M", f"count={size_mib}", "oflag=direct")


@pytest.mark.slow
def test_a_thin_pool_is_not_filled(tmp_path: Path, words: tuple[object, ...]) -> None:
    with thin(180):
        before = used("shelf-pool-tpool")
        with under_way(tmp_path, *words) as process:
            interrupted(process)
        sh("sync")
        blocks, total = map(int, used("shelf-pool-tpool").split("/"))
        assert blocks - int(before.split("/")[0]) < total // 10
        # The other volume can still be written to.
        fill_other(16)
        left_out(tmp_path, words, "thin volume shelf-one")
        named = autotune(*words, "--scratch", MOUNT, state=tmp_path)
        assert "a scratch file may take a tenth of it" in named.stderr
        # The rest of it goes to the other, nearly.
        fill_other(110)
        named = autotune(*words, "--scratch", MOUNT, state=tmp_path)
        assert "% full, and a scratch file is made only below 80%" in named.stderr


@pytest.mark.slow
def test_a_named_scratch_file_is_bounded_by_the_pool_which_is_watched(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    knobs = knob_files()
    with thin(800):
        with under_way(tmp_path, *words, "--scratch", MOUNT) as process:
            (file,) = MOUNT.glob(".autotune-*/scratch")
            assert file.stat().st_size <= 80 << 20
            fill_other(630)
            assert "the thin pool shelf-pool-tpool" in (said := ended(process)), said
        assert not list(MOUNT.glob(".autotune-*"))
        assert knob_files() == knobs


@pytest.mark.slow
def test_a_filesystem_on_a_cache_is_not_the_array(
    home: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    sh("umount", MOUNT)
    make_volume("fast", 64)
    # Anything else there would be taken for a cache in use.
    sh("dd", "if=/dev/zero", "of=/dev/shelf/fast", "bs=4k", "count=1", "oflag=direct")
    size = sh("blockdev", "--getsz", home).strip()
    table = f"0 {size} writecache s {home} /dev/shelf/fast 4096 0"
    sh("dmsetup", "create", "cached", "--table", table)
    sh("mount", "/dev/mapper/cached", MOUNT)
    barred(tmp_path, words, "lies on the cache cached")
    sh("umount", MOUNT)
    sh("dmsetup", "remove", "cached")
    sh("lvremove", "-q", "-f", "shelf/fast")
    sh("mount", home, MOUNT)


def test_without_dmsetup_nothing_is_written(
    home: str, tmp_path: Path, words: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("fio", "mdadm", "setpriv"):
        (tools / name).symlink_to(sh("which", name).strip())
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(programs, "ADMINISTRATORS", ())
    left_out(tmp_path, words, "dmsetup is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["filling", "measuring"])
def test_a_hanging_write_keeps_no_run_from_ending(
    stage: str, home: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    knobs = knob_files()

    def filling() -> bool:
        return any(file.stat().st_size > 1 << 20 for file in MOUNT.glob(".autotune-*/scratch"))

    with contextlib.ExitStack() as stack:
        if stage == "filling":
            process = start(*words, state=tmp_path)
            stack.callback(process.kill)
            wait_until(filling, 60, "a scratch file")
        else:
            process = stack.enter_context(under_way(tmp_path, *words))
        folder = next(MOUNT.glob(".autotune-*"))
        sh("dmsetup", "suspend", "--nolockfs", "--noflush", "shelf-home")
        stack.callback(subprocess.run, ["dmsetup", "resume", "shelf-home"], check=True)
        # Until what is under way has come to wait.
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        asked_s = time.monotonic()
        said = ended(process, WITHIN_S)
        print(f"{stage}: ended after {time.monotonic() - asked_s:.1f} s: {said}")
        assert knob_files() == knobs
        assert str(folder) in said
        assert "does not answer" in said
        assert "autotune restore" in autotune("doctor", DEVICE, state=tmp_path).stdout
    restored = autotune("restore", state=tmp_path)
    assert restored.returncode == 0, restored.stderr
    assert not list(MOUNT.glob(".autotune-*"))


@contextlib.contextmanager
def covered() -> Iterator[None]:
    sh("mount", "-t", "tmpfs", "none", MOUNT)
    try:
        yield
    finally:
        sh("umount", MOUNT)


@pytest.mark.slow
def test_a_filesystem_mounted_over_it_does_not_hide_the_scratch_file(
    home: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    knobs = knob_files()
    with under_way(tmp_path, *words) as process:
        with covered():
            assert "was mounted over" in ended(process)
        assert not list(MOUNT.glob(".autotune-*"))
        assert not list((tmp_path / "journal").glob("*"))
    with under_way(tmp_path, *words) as process, covered():
        process.kill()
        process.wait()
        wait_until(lambda: not guardians(), what="the guardian")
        assert knob_files() == knobs
        wait_until(lambda: not running("fio"), what="fio to end")
        hidden = autotune("restore", state=tmp_path)
        assert hidden.returncode == 1
        assert "another filesystem is mounted over" in hidden.stderr
    assert list(MOUNT.glob(".autotune-*"))
    assert autotune("restore", state=tmp_path).returncode == 0
    assert not list(MOUNT.glob(".autotune-*"))


@pytest.mark.slow
def test_a_snapshot_of_btrfs_keeps_nothing_of_the_scratch_file(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    with mounted(make_volume("tree", 1500), "btrfs"):
        with under_way(tmp_path, *words) as process:
            assert list(MOUNT.glob(".autotune-*/scratch")), autotune("doctor", state=tmp_path)
            sh("btrfs", "subvolume", "snapshot", "-r", MOUNT, MOUNT / "hourly")
            interrupted(process)
        assert not list(MOUNT.glob("hourly/.autotune-*/*"))
        assert not list(MOUNT.glob(".autotune-*"))
    sh("lvremove", "-q", "-f", "shelf/tree")


@pytest.mark.slow
def test_a_scratch_file_on_btrfs_takes_no_more_by_being_overwritten() -> None:
    size, block = 64 << 20, 4096

    def taken() -> int:
        sh("sync", "-f", MOUNT)
        space = os.statvfs(MOUNT)
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    with mounted(make_volume("tree", 1500), "btrfs"):
        words = (".autotune-1", "scratch", str(size), "btrfs")
        separate_process.fill(str(MOUNT), words, lambda _: None)
        before = taken()
        with (MOUNT / ".autotune-1/scratch").open("r+b", buffering=0) as file:
            for place in range(0, size, 2 * block):
                os.pwrite(file.fileno(), os.urandom(block), place)
        assert taken() - before < size // 8
        separate_process.remove(str(MOUNT), words[:2], 20)
    sh("lvremove", "-q", "-f", "shelf/tree")


@pytest.mark.slow
def test_a_filesystem_that_has_shut_down_is_told_of(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    load_modules(("xfs",))
    device = make_volume("tree", 1500)
    says = f"The filesystem on {MOUNT} (xfs) has given up"
    with mounted(device, "xfs"):
        sh("xfs_io", "-x", "-c", "shutdown", MOUNT)
        doctor = autotune("doctor", DEVICE, state=tmp_path)
        plan = autotune_json("run", DEVICE, "--dry-run", state=tmp_path)
        named = autotune(*words, "--scratch", MOUNT, state=tmp_path)
        advice = autotune("advise", DEVICE, "--no-measure", state=tmp_path)
        for command in ("status", "show"):
            assert autotune(command, DEVICE, state=tmp_path).returncode == 0, command
    print(doctor.stdout, doctor.stderr, named.stderr, advice.stdout, advice.stderr)
    assert doctor.returncode == 0
    assert says in doctor.stdout
    assert f"umount {MOUNT}" in doctor.stdout
    assert any(says in note for note in plan["notes"])
    assert plan["scratch"] is None
    assert says in named.stderr
    sh("lvremove", "-q", "-f", "shelf/tree")


@pytest.mark.slow
def test_a_scratch_file_in_a_folder_that_was_renamed_is_removed_after_a_kill(
    home: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    old, new = MOUNT / "old", MOUNT / "deep/new"
    old.mkdir()
    new.parent.mkdir()
    with under_way(tmp_path, *words, "--scratch", old) as process:
        old.rename(new)
        process.kill()
        process.wait()
        wait_until(lambda: not guardians(), what="the guardian")
    assert not list(new.iterdir())
    assert not list((tmp_path / "journal").glob("*"))


@pytest.mark.slow
def test_the_quota_of_a_folders_group_is_not_used(
    home: str, tmp_path: Path, words: tuple[object, ...]
) -> None:
    shared = MOUNT / "shared"
    shared.mkdir()
    os.chown(shared, 0, 1000)
    shared.chmod(0o2755)
    with under_way(tmp_path, *words, "--scratch", shared) as process:
        (file,) = shared.glob(".autotune-*/scratch")
        assert (file.stat().st_gid, file.parent.stat().st_gid) == (0, 0)
        interrupted(process)
    assert not list(shared.iterdir())
