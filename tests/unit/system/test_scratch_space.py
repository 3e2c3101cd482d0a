"""What lies below a filesystem, and what that means for a scratch file in it, on fake trees."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.errors import RefusalError
from autotune.preflight.checks import check
from autotune.system import layers, scratch_space
from autotune.system.array import find_array
from autotune.system.layers import Pool, parse_pool
from autotune.system.programs import UnseenError
from autotune.system.scratch_space import find_place, scratch_bytes
from autotune.system.stack import Mount, mount_number, read_stack
from autotune.system.underlying import Underlying, read_underlying

Tables = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    return fake_sysfs.raid6(tmp_path)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    """Sets what the device-mapper devices are made of; linear if not said."""

    def set_to(**kinds: str) -> None:
        def targets(name: str, _root: Path) -> tuple[str, ...]:
            return (kinds.get(name.replace("-", ""), "linear"),) if name.startswith("dm-") else ()

        monkeypatch.setattr(layers, "targets", targets)

    return set_to


def underlying_of(machine: fake_sysfs.FakeMachine, device: str, fstype: str = "ext4") -> Underlying:
    mount = Mount(1, Path("/mnt"), fstype, device, read_only=False)
    return read_underlying(mount, "md0", machine.root)


def test_partitions_volumes_and_crypt_change_nothing(
    machine: fake_sysfs.FakeMachine, tables: Tables
) -> None:
    machine.partition("md0", "md0p1")
    machine.mapped("dm-0", "LVM-a", "vg-home", "md0p1")
    machine.mapped("dm-1", "CRYPT-a", "home", "dm-0")
    tables(dm1="crypt")
    found = underlying_of(machine, "dm-1")
    assert found.against == ""
    assert {"dm-1", "dm-0", "md0p1", "md0", "sda"} <= set(found.layers)


def test_an_xfs_whose_files_may_lie_elsewhere_bars_a_scratch_file(
    machine: fake_sysfs.FakeMachine, tables: Tables
) -> None:
    """On its realtime device, which is not below what is mounted."""
    machine.disk("sdx")
    machine.partition("md0", "md0p1")
    machine.partition("md0", "md0p2")
    tables()
    for device, bar in (
        (
            "/dev/sdx",
            "its files may lie on the realtime device /dev/sdx, which is not on the array",
        ),
        ("/dev/gone", "its files may lie on the realtime device /dev/gone"),
        ("/dev/md0p2", ""),
    ):
        options = frozenset({"rw", f"rtdev={device}"})
        mount = Mount(1, Path("/mnt"), "xfs", "md0p1", read_only=False, options=options)
        assert read_underlying(mount, "md0", machine.root).bar.startswith(bar), device


@pytest.mark.parametrize(("gib", "bar"), [(8, ""), (9, "it is larger than md0p1, so its files")])
def test_an_f2fs_larger_than_its_device_lies_elsewhere_too(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch, gib: int, bar: str
) -> None:
    """Of one over several devices, the kernel names only the first."""
    machine.partition("md0", "md0p1")
    machine.put("sys/class/block/md0p1/size", str(8 << 21))
    statvfs = SimpleNamespace(f_blocks=gib << 18, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: statvfs)
    assert underlying_of(machine, "md0p1", "f2fs").bar.startswith(bar)
    assert bool(underlying_of(machine, "md0p1", "f2fs").bar) == bool(bar)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("snapshot-origin", "the volume vg-home has a snapshot"),
        ("snapshot", "vg-home is itself a snapshot"),
        ("snapshot-merge", "vg-home is itself a snapshot"),
        ("vdo", "the VDO volume vg-home"),
        ("cache", "the cache vg-home"),
        ("writecache", "the cache vg-home"),
        ("era", 'the target "era" does is unknown'),
        ("clone", 'the target "clone" does is unknown'),
        ("flakey", 'the target "flakey" does is unknown'),
    ],
)
def test_what_is_not_the_filesystems_own_bars_a_scratch_file(
    machine: fake_sysfs.FakeMachine, tables: Tables, kind: str, words: str
) -> None:
    machine.mapped("dm-0", "LVM-a", "vg-home", "md0")
    tables(dm0=kind)
    found = underlying_of(machine, "dm-0")
    assert words in found.bar
    with pytest.raises(RefusalError, match="There can be no scratch file in /mnt"):
        scratch_bytes(Path("/mnt"), found)


def test_what_goes_over_the_network_is_told(machine: fake_sysfs.FakeMachine) -> None:
    machine.device("drbd0")
    machine.hold("md0", "drbd0")
    assert "goes over the network" in underlying_of(machine, "drbd0").bar


def test_bcache_is_a_cache(machine: fake_sysfs.FakeMachine) -> None:
    machine.device("bcache0")
    machine.hold("md0", "bcache0")
    assert "the cache bcache0" in underlying_of(machine, "bcache0").bar


@pytest.mark.parametrize(
    ("kind", "words"),
    [("thin", "a member of the array lies on the thin volume"), ("snapshot-origin", "a snapshot")],
)
def test_below_the_array_space_counts_and_the_rest_is_the_arrays_own(
    tmp_path: Path, tables: Tables, kind: str, words: str
) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    for disk, name in (("sda", "dm-0"), ("sdb", "dm-1")):
        machine.disk(disk)
        machine.mapped(name, "LVM-a", f"vg-{disk}", disk)
    machine.array("md0", "raid1", ["dm-0", "dm-1"])
    tables(dm0="cache", dm1="era")
    assert underlying_of(machine, "md0").against == ""
    tables(dm1=kind)
    assert words in underlying_of(machine, "md0").bar


def test_a_thin_pool_is_used_only_if_asked_for(
    machine: fake_sysfs.FakeMachine, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.mapped("dm-0", "LVM-a", "vg-pool", "md0")
    machine.mapped("dm-1", "LVM-b", "vg-home", "dm-0")
    tables(dm0="thin-pool", dm1="thin")
    found = underlying_of(machine, "dm-1")
    assert found.bar == ""
    assert found.pools == ("dm-0",)
    assert "the thin volume vg-home" in found.unasked
    pools = {"": Pool(0.5, 0.1, 900 << 20, sound=True)}
    monkeypatch.setattr(layers, "pool", lambda _name, _root: pools[""])
    assert scratch_bytes(machine.root, found) == 90 << 20
    for changes, words in (
        ({"data": 0.81}, "is 81% full"),
        ({"metadata": 0.9}, "has its metadata 90% full"),
        ({"sound": False}, "takes no writes"),
    ):
        pools[""] = dataclasses.replace(Pool(0.5, 0.1, 900 << 20, sound=True), **changes)
        with pytest.raises(RefusalError, match=words):
            scratch_bytes(machine.root, found)


def test_what_cannot_be_seen_bars_a_scratch_file(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unseen(_name: str, _root: Path) -> tuple[str, ...]:
        raise UnseenError("dmsetup is not installed")

    machine.mapped("dm-0", "LVM-a", "vg-home", "md0")
    monkeypatch.setattr(layers, "targets", unseen)
    assert "dmsetup is not installed" in underlying_of(machine, "dm-0").bar


def test_a_filesystem_that_may_keep_what_is_removed_is_used_only_if_asked_for(
    machine: fake_sysfs.FakeMachine,
) -> None:
    assert "bcachefs may keep" in underlying_of(machine, "md0", "bcachefs").unasked
    assert "nilfs2 takes new blocks" in underlying_of(machine, "md0", "nilfs2").bar
    assert underlying_of(machine, "md0", "xfs").against == ""


def test_all_devices_of_a_btrfs_count(machine: fake_sysfs.FakeMachine, tables: Tables) -> None:
    machine.disk("sdz")
    machine.mapped("dm-0", "LVM-a", "vg-home", "sdz")
    for name in ("md0", "dm-0"):
        machine.put(f"sys/fs/btrfs/1234/devices/{name}", "")
    tables(dm0="snapshot-origin")
    assert "has a snapshot" in underlying_of(machine, "md0", "btrfs").bar


@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_what_lies_elsewhere_too_is_not_the_array_alone(
    machine: fake_sysfs.FakeMachine, tables: Tables, kind: str
) -> None:
    machine.disk("sdz")
    machine.partition("sdz", "sdz1")
    tables()
    if kind == "btrfs":
        for name in ("md0", "sdz1"):
            machine.put(f"sys/fs/btrfs/1234/devices/{name}", "")
        device = "md0"
    else:
        machine.mapped("dm-0", "LVM-a", "vg-home", "md0")
        machine.hold("sdz1", "dm-0")
        device = "dm-0"
    underlying = underlying_of(machine, device, kind)
    assert underlying.bar == ""
    assert "it lies on sdz1 too" in underlying.unasked
    array, where = find_array("md0", machine.root), machine.root
    mount = Mount(mount_number(where), where, kind, device, False)
    stack = dataclasses.replace(read_stack(array), mounts=(mount,))
    for told, words in ((False, "What writes cannot be measured"), (True, "may not be /dev/md0")):
        findings = check(array, stack, told=told)
        (said,) = (each.message for each in findings if "sdz1 too" in each.message)
        assert words in said
    # All of another volume lies there.
    machine.mapped("dm-1", "LVM-b", "vg-other", "md0")
    assert underlying_of(machine, "dm-1").against == ""


@pytest.mark.parametrize(("fstype", "copies"), [("ext4", False), ("xfs", True), ("btrfs", True)])
def test_a_file_below_that_takes_new_space_has_to_have_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fstype: str, copies: bool
) -> None:
    """Be it sparse, or be a block that a copy shares written elsewhere."""
    machine = fake_sysfs.FakeMachine(tmp_path)
    files = {name: tmp_path / "images" / name for name in ("loop0", "loop1")}
    files["loop0"].parent.mkdir()
    for name, file in files.items():
        with file.open("wb") as image:
            image.truncate(1 << 20)
        machine.disk(name)
        machine.put(f"sys/block/{name}/loop/backing_file", str(file))
    files["loop1"].write_bytes(os.urandom(1 << 20))
    machine.array("md0", "raid1", ["loop0", "loop1"])
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    machine.mount("md0", tmp_path, fstype, number)
    found = underlying_of(machine, "md0")
    assert found.stores == (files["loop0"], *([files["loop1"]] if copies else []))
    free = {files["loop0"].parent: 800, tmp_path: 9000}
    monkeypatch.setattr(
        scratch_space.os,
        "statvfs",
        lambda folder: SimpleNamespace(f_bavail=free[folder], f_frsize=1 << 20),
    )
    assert scratch_bytes(tmp_path, found) == 80 << 20


def test_the_next_filesystem_is_taken_if_the_first_is_no_place(
    machine: fake_sysfs.FakeMachine, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.mapped("dm-0", "LVM-a", "vg-home", "md0")
    tables(dm0="snapshot-origin")
    free = SimpleNamespace(f_bavail=1 << 20, f_frsize=4096)
    monkeypatch.setattr(scratch_space.os, "statvfs", lambda _folder: free)
    array, where = find_array("md0", machine.root), machine.root
    number = mount_number(where)
    barred, good = (Mount(number, where, "ext4", name, False) for name in ("dm-0", "md0"))
    stack = dataclasses.replace(read_stack(array), mounts=(barred, good))
    assert find_place(stack, array).folder == where
    # An application's folder that is mounted elsewhere comes last.
    (where / "app").mkdir()
    app = dataclasses.replace(good, mountpoint=where / "app", root="/app")
    both = dataclasses.replace(stack, mounts=(app, good))
    assert find_place(both, array).folder == where
    only = dataclasses.replace(stack, mounts=(app,))
    assert find_place(only, array).folder == where / "app"
    alone = find_place(dataclasses.replace(stack, mounts=(barred,)), array)
    assert alone.folder is None
    assert "the volume vg-home has a snapshot" in alone.why_not


@pytest.mark.parametrize(
    ("status", "pool"),
    [
        (
            "0 1638400 thin-pool 3 100/2048 25/100 - rw no_discard_passdown "
            "queue_if_no_space - 1024",
            Pool(0.25, 100 / 2048, 75 * 128 * 512, sound=True),
        ),
        (
            "0 1638400 thin-pool 3 100/200 100/100 - out_of_data_space discard_passdown "
            "queue_if_no_space - 1024",
            Pool(1.0, 0.5, 0, sound=False),
        ),
        (
            "0 1638400 thin-pool 3 100/200 50/100 - rw discard_passdown queue_if_no_space "
            "needs_check 1024",
            Pool(0.5, 0.5, 50 * 128 * 512, sound=False),
        ),
        ("0 1638400 thin-pool Fail", Pool(1.0, 1.0, 0, sound=False)),
    ],
)
def test_a_pools_status_is_understood(status: str, pool: Pool) -> None:
    assert parse_pool(status, 128) == pool


def test_a_pool_without_a_table_is_not_seen(
    machine: fake_sysfs.FakeMachine, tables: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that is not activated yet has no table that is live, and dmsetup says nothing of it."""
    machine.mapped("dm-0", "LVM-a", "vg-pool", "md0")
    machine.mapped("dm-1", "LVM-b", "vg-home", "dm-0")
    tables(dm0="thin-pool", dm1="thin")
    found = underlying_of(machine, "dm-1")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "dmsetup").write_text("#!/bin/sh\n")
    (programs / "dmsetup").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(UnseenError, match="no table of vg-pool"):
        layers.pool("dm-0", machine.root)
    with pytest.raises(RefusalError, match="cannot be seen how full the thin pool vg-pool is"):
        scratch_bytes(machine.root, found)


@pytest.mark.parametrize(("free", "size"), [(1 << 40, 1 << 30), (5 << 30, 512 << 20)])
def test_a_scratch_file_takes_a_tenth_of_what_is_free_and_at_most_1_gib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, size: int
) -> None:
    monkeypatch.setattr(scratch_space, "free_bytes", lambda *_: free)
    assert scratch_bytes(tmp_path, Underlying()) == size
