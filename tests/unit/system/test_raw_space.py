"""What lies below a raw device bars writes to it, where its space is others' too, on fake trees."""

import os
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.errors import RefusalError
from autotune.preflight import raw_device
from autotune.system import layers, raw_space
from autotune.system.array import find_array
from autotune.system.programs import UnseenError
from autotune.system.raw_space import against_writing

MIB = 1 << 20


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("linear", None),
        ("crypt", None),
        ("thin", "thin volume vg-m0"),
        ("snapshot-origin", "the volume vg-m0 has a snapshot"),
        ("vdo", "the VDO volume vg-m0"),
        ("", "cannot be seen"),
    ],
)
def test_a_member_whose_space_is_others_too_bars_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, said: str | None
) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    for name in ("sda", "sdb"):
        machine.disk(name)
    machine.mapped("dm-0", "LVM-a", "vg-m0", "sda")
    machine.array("md0", "raid1", ["dm-0", "sdb"])

    def targets(name: str, _root: Path) -> tuple[str, ...]:
        if name == "dm-0" and not kind:
            raise UnseenError("dmsetup is missing")
        return (kind,) if name == "dm-0" else ()

    monkeypatch.setattr(layers, "targets", targets)
    found = against_writing(["md0"], tmp_path)
    assert (said in found) if said and found else (found == said)
    if said:
        monkeypatch.setattr(raw_device, "users", lambda _array: None)
        with pytest.raises(RefusalError, match=said):
            raw_device.refuse_if_used(find_array("md0", tmp_path))


@pytest.mark.parametrize(
    ("fstype", "whole", "free_mib", "refused"),
    [
        ("ext4", False, 300, False),
        ("ext4", False, 200, True),
        ("ext4", True, 1, False),
        ("btrfs", True, 200, True),
        ("btrfs", True, 300, False),
        ("btrfs", False, 500, True),
    ],
)
def test_files_of_loop_devices_have_to_have_room_all_together(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fstype: str,
    whole: bool,
    free_mib: int,
    refused: bool,
) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    for name in ("loop0", "loop1"):
        machine.disk(name)
        file = tmp_path / f"{name}.img"
        with file.open("wb") as image:
            if whole:
                os.posix_fallocate(image.fileno(), 0, 120 * MIB)
            image.truncate(120 * MIB)
        machine.put(f"sys/block/{name}/loop/backing_file", str(file))
    machine.array("md0", "raid1", ["loop0", "loop1"])
    device = tmp_path.stat().st_dev
    machine.mount("md0", tmp_path, fstype, f"{os.major(device)}:{os.minor(device)}")
    free = SimpleNamespace(f_bavail=free_mib, f_frsize=MIB)
    monkeypatch.setattr(raw_space.os, "statvfs", lambda _path: free)
    found = against_writing(["md0"], tmp_path)
    assert (found is not None) == refused
    assert found == against_writing(["loop0", "loop1"], tmp_path)
    if found:
        assert f"with {free_mib} MiB free" in found
        assert ("480 MiB" if free_mib == 500 else "240 MiB") in found


@pytest.mark.parametrize(("spare_mib", "refused"), [(300, False), (200, True)])
@pytest.mark.parametrize("kind", ["tmpfs", "zram"])
def test_what_is_in_memory_has_to_be_spared(
    tmp_path: Path, kind: str, spare_mib: int, refused: bool
) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    names = ["loop0", "loop1"] if kind == "tmpfs" else ["zram0", "zram1"]
    for name in names:
        machine.disk(name)
        machine.put(f"sys/class/block/{name}/size", str(120 * MIB // 512))
        if kind == "tmpfs":
            with (tmp_path / f"{name}.img").open("wb") as image:
                image.truncate(120 * MIB)
            machine.put(f"sys/block/{name}/loop/backing_file", f"{tmp_path}/{name}.img")
    device = tmp_path.stat().st_dev
    if kind == "tmpfs":
        machine.mount("loop0", tmp_path, "tmpfs", f"{os.major(device)}:{os.minor(device)}")
    machine.put(
        "proc/meminfo", f"MemTotal: {20 << 20} kB\nMemAvailable: {(spare_mib + 1024) << 10} kB\n"
    )
    found = against_writing(names, tmp_path)
    assert (found is not None) == refused
    if found:
        assert (
            "is kept in memory: writing all may take 240 MiB of it, and 200 MiB can be spared"
            in found
        )


@pytest.mark.parametrize("kind", ["btrfs", "overlay"])
def test_what_a_file_lies_on_is_seen_where_its_filesystem_has_no_device_number(
    tmp_path: Path, kind: str
) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("sda")
    machine.disk("loop0")
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "image"
    file.touch()
    if kind == "btrfs":
        machine.mount("sda", folder, "btrfs", "0:4711")
    else:
        upper = tmp_path / "upper"
        upper.mkdir()
        machine.mount("x", folder, "overlay", "0:1", ("rw", f"rw,upperdir={upper}"))
        machine.mount("sda", upper, "btrfs", "0:4711")
    machine.put("sys/block/loop0/loop/backing_file", str(file))
    assert layers.below("loop0", tmp_path) == ("loop0", "sda")


def test_a_file_that_is_gone_bars_writes(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("loop0")
    machine.put("sys/block/loop0/loop/backing_file", f"{tmp_path}/gone (deleted)")
    assert "cannot be looked at" in (against_writing(["loop0"], tmp_path) or "")
