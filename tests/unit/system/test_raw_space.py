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
        assert "240 MiB" in found


def test_a_file_that_is_gone_bars_writes(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("loop0")
    machine.put("sys/block/loop0/loop/backing_file", f"{tmp_path}/gone (deleted)")
    assert "cannot be looked at" in (against_writing(["loop0"], tmp_path) or "")
