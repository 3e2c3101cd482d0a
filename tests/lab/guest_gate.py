"""What must keep a raw array from being written to, each for real, on raid6-hdd without a
filesystem; `test_run.py` runs this there."""

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from guest import FAST, autotune, autotune_json, knob_files, running, start, wait_until
from stacks import (
    FOLDER,
    STACKS,
    copy_of_a_partition_table,
    linear,
    link_to,
    loop_device,
    loop_device_by_a_name_that_is_gone,
    metadata_of_a_thin_pool,
    mounted_ext4,
    mounted_through_a_symlink,
    opened_by_a_program,
    partition,
    partition_table_without_an_mbr,
    physical_volume,
    served_as_a_device,
    served_as_a_file,
    sh,
    signature_of_bcachefs,
    text,
)
from volumes import LVM

from autotune.lab.guest.system import load_modules
from autotune.preflight.raw_device import refuse_if_used
from autotune.system.array import find_array
from autotune.system.memory import available_bytes
from autotune.system.signature import signature

DEVICE = "/dev/md0"
PROFILE = """{"schema_version": 1, "name": "p", "created": "2026-01-01T00:00:00Z",
"proven_on": {"level": "raid6", "members": 5, "chunk_kib": 64, "media": "hdd", "kernel": "6.1"},
"workload": "fast", "knobs": {"sync_speed_min": 3000}, "before": {"sync_speed_min": 1000},
"ram_bytes": 0, "ram_budget_bytes": 2, "evidence": {"confirmed": false, "gain": 1.5, "low": 1.4,
"high": 1.6, "trials": 9, "seconds": 9, "figures": {}}}"""
LINK = link_to(DEVICE)
SIMILAR = {
    mounted_through_a_symlink,
    linear,
    physical_volume,
    partition,
    loop_device_by_a_name_that_is_gone,
    served_as_a_device,
    signature_of_bcachefs,
    metadata_of_a_thin_pool,
    partition_table_without_an_mbr,
    copy_of_a_partition_table,
}
"""What another of `STACKS` is much like, so that it is of the slow tests."""


@pytest.fixture(autouse=True)
def bare() -> Iterator[None]:
    """An array with nothing on it."""
    FOLDER.mkdir(exist_ok=True)
    yield
    sh("wipefs", "-q", "-a", "-f", DEVICE)


def digest() -> str:
    """Of the first 16 MiB and the last, read from the disks."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    with Path(DEVICE).open("rb") as file:
        first = file.read(16 << 20)
        file.seek(-(1 << 20), os.SEEK_END)
        return hashlib.sha256(first + file.read()).hexdigest()


@pytest.mark.parametrize(
    "kib", [0, *(pytest.param(kib, marks=pytest.mark.slow) for kib in (64, 3000, -128)), -3000]
)
def test_a_sector_that_cannot_be_read_hides_no_filesystem(kib: int) -> None:
    """blkid says of such a disk that there is nothing on it."""
    sh("mkfs.ext4", "-q", DEVICE)
    sectors = find_array(DEVICE).size_bytes // 512
    bad = kib * 2 if kib >= 0 else sectors + kib * 2
    table = f"0 {bad} linear {DEVICE} 0\n" if bad else ""
    rest = f"{bad + 8} {sectors - bad - 8} linear {DEVICE} {bad + 8}\n"
    table += f"{bad} 8 error\n{rest}"
    sh("dmsetup", "create", "flawed", data=table.encode())
    try:
        assert "cannot be read" in str(signature("/dev/mapper/flawed"))
    finally:
        sh("dmsetup", "remove", "flawed")


@pytest.mark.parametrize(
    ("stack", "named"),
    [
        (mounted_ext4, DEVICE),
        *(
            pytest.param(stack, str(LINK), marks=[pytest.mark.slow] if stack in SIMILAR else [])
            for stack in STACKS
        ),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_an_array_in_use_is_refused_by_name_and_not_touched(
    stack: Callable[[str], contextlib.AbstractContextManager[None]], named: str, tmp_path: Path
) -> None:
    with stack(DEVICE):
        before, knobs = digest(), knob_files()
        done = autotune("run", named, "--destructive", named, state=tmp_path)
        assert done.returncode == 1, done.stdout
        assert text(stack, DEVICE) in done.stderr
        assert digest() == before
        assert knob_files() == knobs


def test_an_array_with_nothing_on_it_is_not_refused() -> None:
    refuse_if_used(find_array(DEVICE))


@pytest.mark.parametrize("used", [opened_by_a_program, loop_device, served_as_a_file])
def test_an_array_that_a_program_uses_is_in_use_though_nothing_is_mounted(
    used: Callable[[str], contextlib.AbstractContextManager[None]], tmp_path: Path
) -> None:
    """A virtual machine on it, or a database: a run is careful with those too."""
    words = "run", DEVICE, "--dry-run"
    assert not autotune_json(*words, state=tmp_path)["careful"]
    with used(DEVICE):
        assert autotune_json(*words, state=tmp_path)["careful"]


@pytest.mark.parametrize("over", [False, True])
def test_a_filesystem_that_no_longer_answers_holds_nobody_up(tmp_path: Path, over: bool) -> None:
    """Who looks for programs that use the array, does not ask about what they have open there, nor
    on an overlay, which would ask."""
    load_modules(("fuse", "overlay") if over else ("fuse",))
    folder, other, above = (tmp_path / name for name in ("silent", "other", "above"))
    for each in (folder, other, above):
        each.mkdir()
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("silent_fuse.py"), folder], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout
        assert server.stdout.readline() == b"mounted\n"
        if over:
            sh("mount", "-t", "overlay", "-o", f"lowerdir={folder}:{other}", "over", above)
        opened = os.open(above / "page" if over else folder, os.O_PATH)
        server.send_signal(signal.SIGSTOP)
        # It would wait for as long as the program is stopped.
        words = ("run", DEVICE, "--destructive", DEVICE, "--dry-run")
        dry = start(*words, state=tmp_path / "state")
        said = dry.communicate(timeout=60)
        assert dry.returncode == 0, said
        os.close(opened)
    finally:
        server.kill()
        if over:
            sh("umount", "-l", above)
        sh("umount", "-l", folder)


def test_a_process_whose_memory_hangs_holds_no_restore_up(tmp_path: Path) -> None:
    """Whoever asks for the command line of such a process waits with it, as `ps` does."""
    load_modules(("fuse",))
    folder, state, profile = tmp_path / "silent", tmp_path / "state", tmp_path / "p.json"
    folder.mkdir()
    profile.write_text(PROFILE)
    before = knob_files()
    here = Path(__file__).parent
    server = subprocess.Popen(
        [sys.executable, here / "silent_fuse.py", folder], stdout=subprocess.PIPE
    )
    stuck = reads = None
    try:
        assert server.stdout
        assert server.stdout.readline() == b"mounted\n"
        assert autotune("apply", profile, DEVICE, state=state).returncode == 0
        assert knob_files() != before
        stuck = subprocess.Popen([sys.executable, here / "stuck_process.py", folder / "page"])
        time.sleep(6)
        reads = subprocess.Popen(["cat", f"/proc/{stuck.pid}/cmdline"], stdout=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            reads.wait(3)
        back = start("restore", DEVICE, state=state)
        said = back.communicate(timeout=60)
        assert back.returncode == 0, said
        assert knob_files() == before
    finally:
        # Its end is that of every wait for it.
        server.kill()
        for each in filter(None, (stuck, reads)):
            each.kill()
            each.wait(20)
        sh("umount", "-l", folder)


def test_another_device_under_the_name_of_the_array_is_not_written_to(tmp_path: Path) -> None:
    workload, theirs, node = tmp_path / "fast.toml", tmp_path / "theirs", Path(DEVICE)
    workload.write_text(FAST)
    theirs.write_bytes(b"v" * (64 << 20))
    knobs = knob_files()
    words = ("run", DEVICE, "--destructive", DEVICE, "--workload", workload, "--p99-ceiling", "5s")
    sh("losetup", "/dev/loop0", theirs)
    process = start(*words, "--strategy", "random", state=tmp_path / "state")
    try:
        wait_until(lambda: bool(running("fio")) or process.poll() is not None, 90, "fio")
        node.rename("/dev/md0.real")
        node.symlink_to("/dev/loop0")
        said = process.communicate(timeout=60)[1]
    finally:
        node.unlink()
        Path("/dev/md0.real").rename(node)
        sh("losetup", "-d", "/dev/loop0")
    assert "/dev/md0 is the name of another device by now" in said
    assert theirs.read_bytes() == b"v" * (64 << 20)
    assert knob_files() == knobs


@pytest.mark.parametrize("command", ["run", "design"])
def test_what_would_fill_the_filesystem_of_others_is_not_written_to(
    tmp_path: Path, command: str
) -> None:
    """Loop devices on sparse files that are larger together than what is free; each is not."""
    image, folder, state = tmp_path / "image", tmp_path / "small", tmp_path / "state"
    sh("fallocate", "-l", "160M", image)
    folder.mkdir()
    sh("mkfs.ext4", "-q", image)
    sh("mount", "-o", "loop", image, folder)
    disks = [f"/dev/loop{number}" for number in (5, 6)]
    for number, disk in enumerate(disks):
        with (folder / f"disk{number}").open("wb") as file:
            file.truncate(96 << 20)
        sh("losetup", disk, folder / f"disk{number}")
    with contextlib.ExitStack() as made:
        # It is in memory, which the guest has little of.
        made.callback(image.unlink)
        made.callback(sh, "umount", folder)
        made.callback(lambda: [sh("losetup", "-d", disk) for disk in disks])
        if command == "run":
            create = ("mdadm", "--create", "/dev/md5", "--run", "--assume-clean", "--level=1")
            sh(*create, "--metadata=1.2", "--raid-devices=2", *disks)
            made.callback(sh, "mdadm", "--stop", "/dev/md5")
            words = ["run", "/dev/md5", "--destructive", "/dev/md5"]
        else:
            words = ["design", *disks, "--destructive", ",".join(disks)]
        free = os.statvfs(folder).f_bfree
        done = autotune(*words, state=state)
        assert done.returncode == 1, done.stderr
        assert "not written to: the loop device's file" in done.stderr
        assert "free" in done.stderr
        assert os.statvfs(folder).f_bfree == free


def test_what_would_take_the_memory_of_others_is_not_written_to(tmp_path: Path) -> None:
    """What a tmpfs calls free is memory, which may be in use."""
    folder = tmp_path / "memory"
    folder.mkdir()
    size = (available_bytes() // 2 >> 20) << 20
    with contextlib.ExitStack() as made:
        sh("mount", "-t", "tmpfs", "-o", f"size={4 * size}", "none", folder)
        made.callback(sh, "umount", folder)
        disks = [f"/dev/loop{number}" for number in (5, 6)]
        for number, disk in enumerate(disks):
            with (folder / f"disk{number}").open("wb") as file:
                file.truncate(size)
            sh("losetup", disk, folder / f"disk{number}")
            made.callback(sh, "losetup", "-d", disk)
        done = autotune("design", *disks, "--destructive", ",".join(disks), state=tmp_path / "s")
        assert done.returncode == 1, done.stderr
        assert re.search(r"disk0, .*/disk1 is kept in memory: .* can be spared", done.stderr)
        assert os.statvfs(folder).f_bfree * os.statvfs(folder).f_frsize == 4 * size


@pytest.mark.parametrize("above", ["device", "btrfs"])
def test_a_thin_pool_is_seen_below_loop_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    load_modules(("dm-thin-pool", "btrfs"))
    (tmp_path / "lvm").mkdir()
    (tmp_path / "lvm/lvm.conf").write_text(LVM)
    monkeypatch.setenv("LVM_SYSTEM_DIR", str(tmp_path / "lvm"))
    image, folder = tmp_path / "image", tmp_path / "folder"
    sh("fallocate", "-l", "160M", image)
    folder.mkdir()
    with contextlib.ExitStack() as made:
        made.callback(image.unlink)
        sh("losetup", "/dev/loop4", image)
        made.callback(sh, "losetup", "-d", "/dev/loop4")
        sh("pvcreate", "-q", "-ff", "-y", "/dev/loop4")
        sh("vgcreate", "-q", "shelf", "/dev/loop4")
        made.callback(sh, "vgremove", "-q", "-f", "shelf")
        pool = ("--type", "thin-pool", "-n", "pool", "-L", "120M", "--poolmetadatasize", "8M")
        sh("lvcreate", "-q", "-y", "-Z", "n", *pool, "--poolmetadataspare", "n", "shelf")
        for name in ("m0", "m1"):
            sh("lvcreate", "-q", "-y", "-V", "300M", "-n", name, "--thinpool", "shelf/pool")
        stores = ["/dev/shelf/m0", "/dev/shelf/m1"]
        if above == "btrfs":
            sh("mkfs.btrfs", "-q", "-f", stores[0])
            sh("mount", stores[0], folder)
            made.callback(sh, "umount", folder)
            sh("btrfs", "subvolume", "create", folder / "sub")
            stores = [str(folder / "sub" / name) for name in ("m0", "m1")]
            for store in stores:
                sh("truncate", "-s", "96M", store)
        disks = [f"/dev/loop{number}" for number in (5, 6)]
        for disk, store in zip(disks, stores, strict=True):
            sh("losetup", disk, store)
            made.callback(sh, "losetup", "-d", disk)
        done = autotune("design", *disks, "--destructive", ",".join(disks), state=tmp_path / "s")
        assert done.returncode == 1, done.stderr
        assert "it lies on the thin volume shelf-m0" in done.stderr
