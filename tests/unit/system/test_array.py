"""What is read of an array, on fake trees."""

import threading
import time
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import InfeasibleError, RefusalError, UsageError
from autotune.knobs import ALL, by_name, for_array, is_of_disks, missing
from autotune.knobs.stripe_cache import own_stripes
from autotune.system import sysfs
from autotune.system.array import Media, find_array, list_arrays


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    return fake_sysfs.raid6(tmp_path)


def test_an_array_is_read_whole(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("/dev/md0", machine.root)
    assert array.device == "/dev/md0"
    assert array.mdadm_uuid == "f6e606b3:8ce3aa59:41c0aa90:d0ab4f9c"
    assert (array.level, array.raid_disks, array.chunk_bytes) == ("raid6", 5, 65536)
    assert array.size_bytes == 780288 * 512
    assert array.disks == ("sda", "sdb", "sdc", "sdd", "sde")
    assert array.media is Media.HDD
    assert array.kernel_version == (6, 1)
    assert array.members[0].nr_requests == 128
    assert array.redundant
    assert not array.read_only


def test_an_old_superblocks_uuid_is_in_mdadms_order(machine: fake_sysfs.FakeMachine) -> None:
    # Both were seen for one array of metadata 0.90 on 6.1.176.
    machine.put("sys/block/md0/md/uuid", "34e7c2b0-281f-4e36-3c6b-183d348f9553")
    machine.put("sys/block/md0/md/metadata_version", "0.90")
    assert find_array("md0", machine.root).uuid == "b0c2e734364e1f283d186b3c53958f34"


def test_members_that_are_partitions_lead_to_their_disks(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    for disk in ("sda", "nvme0n1"):
        machine.disk(disk, rotational=False)
    machine.partition("sda", "sda2")
    machine.partition("nvme0n1", "nvme0n1p1")
    machine.array("md1", "raid1", ["sda2", "nvme0n1p1"])
    array = find_array("/dev/md1", tmp_path)
    assert array.disks == ("sda", "nvme0n1")
    assert [member.media for member in array.members] == [Media.SSD, Media.NVME]
    assert array.media is Media.SSD, "the slowest sets the pace"


def test_members_on_dm_lead_to_the_physical_disks(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    for disk in ("sda", "sdb"):
        machine.disk(disk, rotational=False)
    machine.mapped("dm-0", "mpath-1", "mpatha", "sda")
    machine.array("md0", "raid1", ["dm-0", "sdb"])
    array = find_array("md0", tmp_path)
    assert array.leaves == {"sda", "sdb"}
    assert array.media is Media.SSD


def test_a_disk_that_is_gone_makes_no_ssds_hard_disks(tmp_path: Path) -> None:
    """md keeps a member that has failed until it is removed, though its disk was pulled out."""
    machine = fake_sysfs.FakeMachine(tmp_path)
    for disk in ("sda", "sdb"):
        machine.disk(disk, rotational=False)
    machine.array("md0", "raid1", ["sda", "sdb"])
    machine.put("sys/block/md0/md/dev-sdc/state", "faulty")
    assert find_array("md0", tmp_path).media is Media.SSD


def test_a_write_journal_is_none_of_the_disks_that_are_tuned(tmp_path: Path) -> None:
    """It is another kind of disk, and often the one that the system is on."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.disk("nvme0n1", rotational=False)
    machine.put("sys/block/md0/md/dev-nvme0n1/state", "in_sync,journal")
    array = find_array("md0", tmp_path)
    assert array.disks == ("sda", "sdb", "sdc", "sdd", "sde")
    assert not any(is_of_disks(knob.name) for knob in for_array(array, ALL))
    assert "write journal" in (missing(array, by_name("scheduler")) or "")
    machine.put("sys/block/md0/md/dev-nvme0n1/state", "faulty,journal")
    assert len(find_array("md0", tmp_path).members) == 6


def test_stripes_of_another_array_are_not_counted_as_ones_own(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("sys/block/md0/md/stripe_cache_size", "256")
    assert own_stripes(find_array("md0", tmp_path)) == 256
    disks = [f"sd{letter}" for letter in "fghij"]
    for disk in disks:
        machine.disk(disk, rotational=True)
    machine.array("md1", "raid5", disks)
    machine.put("sys/block/md1/md/stripe_cache_size", "256")
    both = "raid6-md0 9000 9000 1976 8 4 : tunables 0 0 0"
    machine.put("proc/slabinfo", both)
    assert own_stripes(find_array("md0", tmp_path)) is None
    machine.put("proc/slabinfo", f"{both}\nraid5-md1 300 300 1976 8 4 : tunables 0 0 0")
    assert own_stripes(find_array("md0", tmp_path)) == 9000


def test_a_symlink_finds_its_array(machine: fake_sysfs.FakeMachine) -> None:
    (machine.root / "dev/md").mkdir()
    (machine.root / "dev/md/home").symlink_to("../md0")
    assert find_array("/dev/md/home", machine.root).name == "md0"


def test_raid0_is_found_though_it_has_no_sync(tmp_path: Path) -> None:
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("sda")
    machine.disk("sdb")
    machine.array("md0", "raid0", ["sda", "sdb"])
    array = find_array("md0", tmp_path)
    assert not array.redundant
    assert (array.sync_action, array.degraded) == ("idle", 0)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("/dev/md7", "There is no /dev/md7"),
        ("/dev/sda", "a disk, a member of the array /dev/md0"),
        ("/dev/md0p1", "a partition of /dev/md0: name that"),
        ("/dev/dm-0", "an LVM volume on the array /dev/md0: name that"),
        ("/dev", "a folder"),
    ],
)
def test_what_is_no_array_is_called_what_it_is(
    machine: fake_sysfs.FakeMachine, device: str, words: str
) -> None:
    machine.partition("md0", "md0p1")
    machine.mapped("dm-0", "LVM-x", "vg-lv", "md0p1")
    with pytest.raises(UsageError, match=words):
        find_array(device, machine.root)


def test_on_a_real_root_a_file_is_no_block_device(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not a block device"):
        find_array(tmp_path / "file")


def test_an_inactive_array_is_refused_and_not_listed(machine: fake_sysfs.FakeMachine) -> None:
    assert [array.name for array in list_arrays(machine.root)] == ["md0"]
    machine.put("sys/block/md0/md/array_state", "inactive")
    assert list_arrays(machine.root) == []
    with pytest.raises(RefusalError, match="mdadm --run /dev/md0"):
        find_array("md0", machine.root)


def test_the_fingerprint_changes_with_a_member(machine: fake_sysfs.FakeMachine) -> None:
    before = find_array("md0", machine.root)
    machine.put("sys/block/sda/queue/nr_requests", "64")
    assert before.now().fingerprint == before.fingerprint
    machine.put("sys/block/sda/size", "500000")
    assert before.now().fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("text", "value", "original"),
    [
        ("200000 (system)", "200000", "system"),
        ("5000 (local)", "5000", "5000"),
        ("none [mq-deadline] bfq", "mq-deadline", "mq-deadline"),
        ("none", "none", "none"),
        ("256", "256", "256"),
    ],
)
def test_kernel_texts_are_understood(tmp_path: Path, text: str, value: str, original: str) -> None:
    file = tmp_path / "file"
    file.write_text(text + "\n")
    assert (sysfs.value(file), sysfs.original(file)) == (value, original)


def test_writing_a_missing_file_does_not_make_it(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError, match="does not exist"):
        sysfs.write(tmp_path / "missing", "1")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_value_is_an_error_with_path_and_value() -> None:
    with pytest.raises(InfeasibleError, match="did not take 1 in /dev/full"):
        sysfs.write(Path("/dev/full"), "1")


def test_a_store_that_blocks_is_given_up_and_never_overtaken(tmp_path: Path) -> None:
    import os  # noqa: PLC0415

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # Opening it blocks until there is a reader, as md's mutex does.
    start = time.monotonic()
    for text in ("first", "second"):
        with pytest.raises(InfeasibleError, match=f"did not take {text} within"):
            sysfs.write(pipe, text, timeout_s=0.2)
    assert time.monotonic() - start < 5
    assert pipe.read_text() == "first", "the second was not even begun"
    for thread in threading.enumerate():
        if thread.name.startswith("store "):
            thread.join(5)


def test_disks_that_are_called_otherwise_after_a_boot_are_the_same_members(tmp_path: Path) -> None:
    def booted(root: Path, letters: str, serials: str) -> str:
        machine = fake_sysfs.FakeMachine(root)
        for letter, serial in zip(letters, serials, strict=True):
            machine.disk(f"sd{letter}")
            machine.put(f"sys/block/sd{letter}/device/wwid", f"naa.500{serial}")
        machine.array("md0", "raid5", [f"sd{letter}" for letter in letters])
        return find_array("md0", root).fingerprint

    before = booted(tmp_path / "before", "bcde", "1234")
    assert booted(tmp_path / "after", "cdef", "2134") == before
    assert booted(tmp_path / "replaced", "bcde", "1235") != before


def test_a_uuid_that_cannot_be_read_any_more_is_no_other_one(
    machine: fake_sysfs.FakeMachine,
) -> None:
    array = find_array("md0", machine.root)
    (array.md / "uuid").unlink()
    with pytest.raises(RefusalError, match="The UUID of /dev/md0 could be read before"):
        array.now()
    machine.put("sys/block/md0/md/uuid", "00000000-8ce3aa59-41c0aa90-d0ab4f9c")
    with pytest.raises(RefusalError, match="Another array is called /dev/md0"):
        array.now()
