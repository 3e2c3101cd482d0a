"""What ends a run on account of its scratch file's filesystem."""

import os
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.safety.scratch_watch import Footing, SameFile
from autotune.system.stack import Mount
from autotune.system.underlying import Underlying, layers_of

MOST_BYTES = 1 << 62


def test_a_filesystem_that_others_have_filled_ends_the_run(tmp_path: Path) -> None:
    mount = Mount(1, tmp_path, "ext4", "md0", False)
    assert Footing(tmp_path, mount, "md0", Underlying(), 1)._short() is None
    assert "nearly full" in str(Footing(tmp_path, mount, "md0", Underlying(), MOST_BYTES)._short())


def test_a_filesystem_below_that_others_have_filled_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount, below = Mount(1, tmp_path, "ext4", "md0", False), tmp_path / "below"
    look = Footing(tmp_path, mount, "md0", Underlying(stores=(below / "image",)), 100 << 20)
    free = {tmp_path: 900, below: 101}
    monkeypatch.setattr(
        os, "statvfs", lambda place: SimpleNamespace(f_bavail=free[place], f_frsize=1 << 20)
    )
    assert look._short() is None
    free[below] = 99
    assert f"the filesystem of {below} is nearly full" in str(look._short())


@pytest.mark.parametrize("fstype", ["ext4", "btrfs"])
def test_a_filesystem_that_leaves_the_array_ends_the_run(tmp_path: Path, fstype: str) -> None:
    """Even if it lay on other disks, too, when the run began."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.disk("sdx")
    root = machine.root
    if fstype == "btrfs":
        device = "md0"
        parts = [root / f"sys/fs/btrfs/1234/devices/{name}" for name in ("md0", "sdx")]
        for part in parts:
            machine.put(str(part.relative_to(root)), "")
        on_the_array = parts[0]
    else:
        device = "dm-0"
        machine.mapped(device, "UUID", "vg-home", "md0")
        machine.hold("sdx", device)
        on_the_array = root / "sys/class/block/dm-0/slaves/md0"
    mount = Mount(1, tmp_path, fstype, device, False)
    layers = layers_of(mount, "md0", root)
    look = Footing(tmp_path, mount, "md0", Underlying(fstype, layers=layers, root=root), 1)
    assert look._new() is None
    on_the_array.unlink()
    assert "does not lie on md0 any more" in str(look._new())


def test_another_file_under_the_name_of_the_scratch_file_ends_the_run(tmp_path: Path) -> None:
    file, theirs = tmp_path / "scratch", tmp_path / "theirs"
    file.touch()
    theirs.touch()
    look = SameFile(file)
    assert look() is None
    file.rename(tmp_path / "away")
    assert "is not the scratch file" in str(look())
    file.symlink_to(tmp_path / "away")
    assert "is not the scratch file" in str(look())
    file.unlink()
    theirs.rename(file)
    assert "is not the scratch file" in str(look())
