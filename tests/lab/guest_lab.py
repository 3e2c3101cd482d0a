"""Checks made inside the lab, on raid5-hdd; `test_lab.py` runs this there."""

import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.durable import lab_user

MD = Path("/sys/block/md0/md")
DISKS = ("vda", "vdb", "vdc", "vdd")


def read(path: str | Path) -> str:
    return Path(path).read_text().strip()


def timed_reads(device: str, count: int = 10) -> float:
    """Return the seconds that so many scattered reads past the page cache take."""
    disk = os.open(device, os.O_RDONLY | os.O_DIRECT)
    began = time.monotonic()
    with mmap.mmap(-1, 4096) as page:
        for number in range(count):
            os.preadv(disk, [page], (number * 377 % 1000 + 1) * 1024 * 1024)
    os.close(disk)
    return time.monotonic() - began


def test_the_array_is_what_the_scenario_says() -> None:
    assert read(MD / "level") == "raid5"
    assert read(MD / "raid_disks") == "4"
    assert read(MD / "chunk_size") == str(128 * 1024)
    assert read(MD / "sync_action") == "idle"
    assert read(MD / "degraded") == "0"


def test_disks_rotate_if_they_are_hdds() -> None:
    assert [read(f"/sys/block/{disk}/queue/rotational") for disk in DISKS] == ["1"] * 4


def test_the_filesystem_is_mounted_and_works() -> None:
    assert "/dev/md0 /mnt/md0 ext4 rw" in read("/proc/mounts")
    data = os.urandom(4 * 1024 * 1024)
    Path("/mnt/md0/file").write_bytes(data)
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    assert Path("/mnt/md0/file").read_bytes() == data


def test_a_check_finds_no_mismatch() -> None:
    (MD / "sync_max").write_text("65536")
    (MD / "sync_action").write_text("check")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and read(MD / "sync_completed").split(" ")[0] != "65536":
        time.sleep(0.1)
    checked = read(MD / "sync_completed").split(" ")[0]
    (MD / "sync_action").write_text("idle")
    assert checked == "65536"
    assert read(MD / "mismatch_cnt") == "0"


@pytest.mark.parametrize("folder", ["/etc", "/var/lib", "/run", "/tmp", "/root", "/dev/shm"])
def test_the_system_is_writable(folder: str) -> None:
    if folder == "/root" and lab_user():
        pytest.skip("whoever has started the lab cannot look into it")
    path = Path(folder, "autotune-lab-was-here")
    path.write_text("x")
    assert path.read_text() == "x"


def test_the_stack_above_md_can_be_built() -> None:
    subprocess.run(["dmsetup", "create", "above", "--table", "0 8 error"], check=True)
    subprocess.run(["dmsetup", "remove", "above"], check=True)
    assert "bfq" in read("/sys/block/vda/queue/scheduler")


def test_what_is_written_below_out_is_the_hosts() -> None:
    out = Path(os.environ["AUTOTUNE_LAB_OUT"])
    assert (out / "from-host").read_text() == "hello"
    (out / "from-guest").write_text("hello back")


@pytest.fixture
def slow_vda() -> Iterator[None]:
    control = Path("/run/lab/disks/vda/slowdown")
    control.write_text("8\n")
    time.sleep(0.3)
    yield
    control.write_text("1\n")
    time.sleep(0.3)


def test_a_disk_can_be_slowed_down(slow_vda: None) -> None:
    # About 10 x 12 ms against eight times that.
    assert timed_reads("/dev/vda") > 3 * timed_reads("/dev/vdb")


def test_z_a_disk_can_be_made_to_fail() -> None:
    Path("/run/lab/disks/vdd/fail").write_text("1\n")
    time.sleep(0.3)
    Path("/mnt/md0/other").write_bytes(b"x" * 1024 * 1024)
    subprocess.run(["sync"], check=True)
    assert read(MD / "degraded") == "1"
    assert Path("/mnt/md0/other").read_bytes() == b"x" * 1024 * 1024
