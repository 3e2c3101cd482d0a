"""What lies on an array and beside it, on fake trees."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.system import stack
from autotune.system.array import find_array
from autotune.system.stack import Stack, read_stack


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    return fake_sysfs.raid6(tmp_path)


def stack_of(machine: fake_sysfs.FakeMachine) -> Stack:
    return read_stack(find_array("md0", machine.root))


def test_a_bare_array_is_not_in_use(machine: fake_sysfs.FakeMachine) -> None:
    assert not stack_of(machine).in_use


def test_a_filesystem_is_found_through_partition_lvm_and_crypt(
    machine: fake_sysfs.FakeMachine,
) -> None:
    machine.partition("md0", "md0p1")
    machine.mapped("dm-0", "LVM-abc", "vg0-home", "md0p1")
    machine.mapped("dm-1", "CRYPT-LUKS2-abc", "home_crypt", "dm-0")
    machine.mount("dm-1", Path("/home"))
    stack = stack_of(machine)
    assert [holder.kind for holder in stack.holders] == ["partition", "lvm", "crypt"]
    assert [holder.label for holder in stack.holders] == ["md0p1", "vg0-home", "home_crypt"]
    assert [(mount.device, mount.mountpoint) for mount in stack.mounts] == [("dm-1", Path("/home"))]


def test_a_line_break_in_a_mountpoint_hides_no_mount(machine: fake_sysfs.FakeMachine) -> None:
    machine.mount("md0", Path("/my\u2028da\rta"))
    assert [mount.mountpoint for mount in stack_of(machine).mounts] == [Path("/my\u2028da\rta")]


def test_spaces_in_a_mountpoint_are_understood(machine: fake_sysfs.FakeMachine) -> None:
    machine.mount("md0", Path("/my\\040data"))
    assert [mount.mountpoint for mount in stack_of(machine).mounts] == [Path("/my data")]


def test_btrfs_is_found_by_another_one_of_its_devices(machine: fake_sysfs.FakeMachine) -> None:
    """Any of them is shown as its source."""
    machine.disk("sdx")
    machine.mount("sdx", Path("/srv"), "btrfs", number="0:42")
    assert stack_of(machine).mounts == ()
    for name in ("sdx", "md0"):
        machine.put(f"sys/fs/btrfs/a-uuid/devices/{name}", "")
    (mount,) = stack_of(machine).mounts
    assert (mount.device, mount.mountpoint) == ("md0", Path("/srv"))


def test_what_lies_on_no_device_may_be_called_anything(machine: fake_sysfs.FakeMachine) -> None:
    machine.put("proc/filesystems", "nodev\ttmpfs\nnodev\tfuse\n\tbtrfs")
    machine.mount("md0", Path("/srv"), "tmpfs", number="0:42")
    assert stack_of(machine).mounts == ()


def test_btrfs_is_found_by_its_source(machine: fake_sysfs.FakeMachine) -> None:
    machine.mount("md0", Path("/srv"), "btrfs", number="0:42")
    assert [mount.fstype for mount in stack_of(machine).mounts] == ["btrfs"]


@pytest.mark.parametrize(("who", "fstype"), [("0", "fuse.fuse2fs"), ("1000", "fuse.sshfs")])
def test_of_fuse_only_roots_word_counts(
    machine: fake_sysfs.FakeMachine, who: str, fstype: str
) -> None:
    """Any user may mount one, and choose what it shows as its source."""
    options = ("rw,nosuid", f"rw,user_id={who},group_id={who}")
    machine.mount("md0", Path("/home/mallory/mnt"), fstype, "0:99", options)
    assert bool(stack_of(machine).in_use) == (who == "0")


def test_other_filesystems_are_left_out(machine: fake_sysfs.FakeMachine) -> None:
    machine.disk("sdz")
    machine.mount("sdz", Path("/other"))
    assert stack_of(machine).mounts == ()


def test_swap_on_a_volume_of_the_array_is_found(machine: fake_sysfs.FakeMachine) -> None:
    machine.mapped("dm-0", "LVM-abc", "vg0-swap", "md0")
    head = "Filename\tType\tSize\tUsed\tPriority"
    machine.put("proc/swaps", f"{head}\n/dev/mapper/vg0-swap partition 1 0 -2")
    stack = stack_of(machine)
    assert stack.swaps == ("/dev/mapper/vg0-swap",)
    assert stack.in_use


def test_an_array_on_partitions_of_the_same_disks_is_beside(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    for disk in ("sda", "sdb", "sdc", "sdd"):
        machine.disk(disk)
    for disk in ("sda", "sdb"):
        machine.partition(disk, f"{disk}1")
        machine.partition(disk, f"{disk}2")
    machine.array("md0", "raid1", ["sda1", "sdb1"])
    machine.array("md1", "raid1", ["sda2", "sdb2"])
    machine.array("md2", "raid1", ["sdc", "sdd"])
    assert stack_of(machine).beside == ("md1",)


def test_a_folder_is_on_the_array_if_its_mount_is(
    machine: fake_sysfs.FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "mounted"
    where.mkdir()
    machine.mount("md0", where)
    found = stack_of(machine)
    numbers = {where: 36, tmp_path: 25}
    monkeypatch.setattr(stack, "mount_number", lambda path: numbers.get(path, 1))
    mount = found.mount_for(where / "not" / "yet")
    assert mount is not None
    assert mount.device == "md0"
    assert found.mount_for(tmp_path) is None
    (where / "proc").symlink_to("/proc")
    assert found.mount_for(where / "proc") is None, "a link out of the filesystem"
    assert [m.mountpoint for m in found.writable] == [where]
    numbers[where] = 37
    assert found.writable == (), "another filesystem is mounted over it"


def test_the_mount_of_a_path_is_the_kernels() -> None:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    mountpoint = {int(line.split(" ")[0]): line.split(" ")[4] for line in lines}
    assert mountpoint[stack.mount_number(Path("/proc"))] == "/proc"
