"""What keeps a raw array from being written to, and needs no array; the rest is in the lab."""

import os
import re
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.errors import RefusalError
from autotune.preflight import raw_device
from autotune.system import device_users, layers, open_files, signature
from autotune.system.array import find_array
from autotune.system.signature import (
    BCACHEFS,
    BCACHEFS_AT,
    DM_MAGIC_AT,
    EDGE_BYTES,
    GPT,
    unknown_to_blkid,
)

NOTHING = bytes(EDGE_BYTES)
SEEN = open_files.open_files


@pytest.fixture(autouse=True)
def all_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be these tests run where some process must not be looked into, as in a container."""
    seen = lambda: (each for each in SEEN() if each[1] is not None)  # noqa: E731
    monkeypatch.setattr(device_users, "open_files", seen)
    monkeypatch.setattr(device_users, "_hidden", lambda: "")


HIDDEN = device_users._hidden


@pytest.mark.parametrize(
    ("right", "namespace", "files", "said"),
    [
        (True, True, None, "process 7"),
        (False, True, [], "those of other users"),
        (True, False, [], "those outside of this container"),
        (True, True, [], ""),
    ],
)
def test_where_nobody_can_tell_who_has_it_open_it_is_not_written_to(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    right: bool,
    namespace: bool,
    files: list[Path] | None,
    said: str,
) -> None:
    """A unit or a container may lack the right to look into what belongs to others."""
    here = str(Path("/proc/self/ns/pid").readlink()) if namespace else "another"
    monkeypatch.setattr(device_users, "_hidden", HIDDEN)
    monkeypatch.setattr(device_users, "_OUTERMOST", here)
    monkeypatch.setattr(device_users, "open_files", lambda: iter([(7, files)]))
    monkeypatch.setattr(device_users, "has_right", lambda *_: right)
    device = tmp_path / "device"
    device.write_bytes(b"")
    for look in (device_users.program_with, device_users.writer_to):
        if said:
            with pytest.raises(RefusalError, match=rf"\({said} cannot\).*CAP_SYS_PTRACE"):
                look(device)
        else:
            assert look(device) is None


def test_what_blkid_does_not_know_is_seen() -> None:
    assert unknown_to_blkid(NOTHING, NOTHING) is None
    start = NOTHING[:BCACHEFS_AT] + BCACHEFS + NOTHING
    assert "bcachefs" in str(unknown_to_blkid(start, NOTHING))
    start = NOTHING[:DM_MAGIC_AT] + (0o6142003).to_bytes(8, "little") + NOTHING
    assert "(dm-cache)" in str(unknown_to_blkid(start, NOTHING))
    for sector in (512, 4096):
        end = NOTHING[:-sector] + GPT.ljust(sector, b"\0")
        assert "partition table" in str(unknown_to_blkid(NOTHING, end))
        start = NOTHING[:sector] + GPT.ljust(sector, b"\0")
        assert "without its MBR" in str(unknown_to_blkid(start, NOTHING))


@pytest.mark.parametrize(
    ("blkid", "found"),
    [
        ("exit 2", None),
        ("echo TYPE=ext4", "it has a signature of ext4"),
        ("exit 8", "(it has signatures of more than one kind)"),
        ("echo no memory >&2; exit 4", "(exit status 4: no memory)"),
        # As Ctrl-C, to a whole group of processes: this one's is another. Not SIGINT, which whoever
        # runs the tests may ignore.
        ("kill -TERM 0; exit 2", "(SIGTERM has ended it)"),
    ],
)
def test_what_blkid_cannot_tell_is_refused_with_why(
    blkid: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, device = tmp_path / "blkid", tmp_path / "device"
    program.write_text(f"#!/bin/sh\n{blkid}\n")
    program.chmod(0o755)
    device.write_bytes(2 * NOTHING)
    monkeypatch.setattr(signature, "find", lambda _name: str(program))
    said = signature.signature(str(device))
    assert said is None if found is None else found in str(said)


def test_a_blkid_that_cannot_run_is_refused_with_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "device"
    device.write_bytes(2 * NOTHING)
    monkeypatch.setattr(signature, "find", lambda _name: str(tmp_path / "gone"))
    said = signature.signature(str(device))
    assert said == "blkid cannot be asked what is on it (No such file or directory)"


def test_a_program_is_known_by_what_it_opened_not_by_the_name_that_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain file stands for the device."""
    monkeypatch.setattr(device_users, "PATIENCE_S", 0.0)
    for name in ("_node", "_opened"):
        monkeypatch.setattr(device_users, name, lambda path: (0, _inode(path)))
    device, link = tmp_path / "device", tmp_path / "link"
    device.write_bytes(b"")
    os.link(device, link)
    assert device_users.program_with(device) is None
    with subprocess.Popen(["sleep", "60"], stdin=link.open("rb")) as process:
        found = device_users.program_with(device)
        process.kill()
    assert found == f"sleep (process {process.pid})"


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain file that stands for the device of an array."""
    monkeypatch.setattr(device_users, "_number", _inode)
    for name in ("_node", "_opened"):
        monkeypatch.setattr(device_users, name, lambda path: (0, _inode(path)))
    monkeypatch.setattr(device_users, "AGAIN_S", 0.0)
    (tmp_path / "md0").write_bytes(b"")
    return tmp_path / "md0"


@pytest.mark.parametrize(("mode", "ends"), [("r+b", True), ("rb", False)])
def test_who_writes_to_a_device_that_is_held_ends_the_run(
    device: Path, mode: str, ends: bool
) -> None:
    """A hold keeps out none who does not ask for one. udev reads it for moments."""
    look = raw_device.Newcomers(SimpleNamespace(name="md0", device=str(device), root=device.parent))
    assert look() is None
    with device.open(mode) as file:
        # What a child of ours has open, as fio does, is ours.
        with subprocess.Popen(["sleep", "60"], stdin=file) as own:
            assert device_users.writer_to(device) is None
            own.kill()
        # The parent of this one has ended.
        subprocess.run(["setsid", "-f", "sleep", "60"], stdin=file, check=True)
    found = device_users.writer_to(device)
    assert look() is None, "not at each call"
    look.next_s = 0.0
    said = look()
    other = next(p.parents[1] for p in Path("/proc").glob("[0-9]*/fd/0") if _leads(p, device))
    os.kill(int(other.name), signal.SIGKILL)
    assert (bool(found), bool(said)) == (ends, ends)
    # It may have had another name a moment ago.
    assert (f"(process {other.name})" in (found or "")) == ends
    assert (f"(process {other.name}) has {device} open for writing, so" in (said or "")) == ends


def test_so_does_a_partition_that_somebody_makes(device: Path, tmp_path: Path) -> None:
    look = raw_device.Newcomers(SimpleNamespace(name="md0", device=str(device), root=tmp_path))
    assert look() is None
    (tmp_path / "sys/class/block/md0/md0p1").mkdir(parents=True)
    (tmp_path / "sys/class/block/md0/md0p1/partition").write_text("1")
    (tmp_path / "sys/class/block/md0p1").symlink_to(tmp_path / "sys/class/block/md0/md0p1")
    look.next_s = 0.0
    assert str(look()).startswith(f"the partition md0p1 lies on {device}, so")


CORE = "sys/kernel/config/target/core"
KERNEL_USERS = (
    ("sys/block/loop3/loop/backing_file", "{path}", "the loop device loop3"),
    (
        f"{CORE}/fileio_0/disk/info",
        "Status: ACTIVATED  Max Queue Depth: 128  SectorSize: 512  HwMaxSectors: 16384\n"
        "        TCM FILEIO ID: 0        File: {path}  Size: 399507456  Mode: O_DSYNC Async: 0",
        "the store fileio_0/disk of the kernel's SCSI target",
    ),
    (
        f"{CORE}/iblock_1/disk/info",
        "Status: DEACTIVATED  Max Queue Depth: 0  SectorSize: 0  HwMaxSectors: 0\n"
        "        iBlock device: md0  UDEV PATH: {path}  readonly: 0",
        "the store iblock_1/disk of the kernel's SCSI target",
    ),
    (
        "sys/kernel/config/nvmet/subsystems/nqn.here:disk/namespaces/7/device_path",
        "{path}",
        "the namespace 7 of nqn.here:disk of the kernel's NVMe target",
    ),
    (
        "sys/kernel/config/usb_gadget/g1/functions/mass_storage.0/lun.0/file",
        "{path}",
        "the USB gadget g1",
    ),
    ("sys/kernel/scst_tgt/devices/disk/filename", "{path}\n[key]", "the SCST device disk"),
    ("sys/class/rnbd-server/ctl/devices/md0/block_dev/dev", "{decimal}", "the RNBD server"),
    (
        "sys/bus/xen-backend/devices/vbd-3-51712/physical_device",
        "{hex}",
        "the disk vbd-3-51712 of a Xen guest",
    ),
)


@pytest.mark.parametrize(
    ("file", "text", "words"), KERNEL_USERS, ids=[words for _, _, words in KERNEL_USERS]
)
def test_so_does_what_the_kernel_serves_without_holding_it(
    file: str, text: str, words: str, device: Path, tmp_path: Path
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    other = tmp_path / "md1"
    other.write_bytes(b"")
    look = raw_device.Newcomers(SimpleNamespace(name="md0", device=str(device), root=tmp_path))
    for served, found in ((other, None), (device, words)):
        number = _inode(served) or 0
        major, minor = os.major(number), os.minor(number)
        numbers = {"decimal": f"{major}:{minor}", "hex": f"{major:x}:{minor:x}"}
        (tmp_path / file).write_text(text.format(path=served, **numbers) + "\n")
        assert device_users.kernel_user(device, tmp_path) == found
    assert str(look()).startswith(f"{words} lies on {device}, so")


def test_what_is_set_up_on_a_device_that_is_gone_lies_on_no_other(
    device: Path, tmp_path: Path
) -> None:
    file = tmp_path / "sys/block/loop3/loop/backing_file"
    file.parent.mkdir(parents=True)
    file.write_text("/dev/gone (deleted)\n")
    assert device_users.kernel_user(device, tmp_path) is None
    assert device_users.kernel_user(device.with_name("gone"), tmp_path) is None


def _leads(link: Path, device: Path) -> bool:
    try:
        return link.resolve() == device
    except OSError:
        return False


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def test_a_snapshot_of_what_a_raw_device_lies_on_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a backup takes one in the middle of a trial, which would be filled up."""
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("sda")
    machine.mapped("dm-0", "LVM-a", "vg-srv", "sda")
    machine.array("md0", "raid1", ["dm-0", "sda"])
    kinds = ["linear"]
    monkeypatch.setattr(layers, "targets", lambda name, _: kinds if name == "dm-0" else ())
    monkeypatch.setattr(raw_device, "writer_to", lambda _device: None)
    look = raw_device.Newcomers(find_array("md0", tmp_path))
    assert look() is None
    look.next_s, kinds[0] = 0.0, "snapshot-origin"
    assert re.search("without harm .the volume vg-srv has a snapshot", look() or "")
