"""What a check waits for, and of which array it is."""

import dataclasses
from pathlib import Path

import fake_sysfs
import pytest

from autotune.checking import obstacles
from autotune.errors import RefusalError
from autotune.preflight import checks
from autotune.system import programs
from autotune.system.array import Array, find_array
from autotune.system.stack import read_stack
from autotune.system.temperature import temperatures


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    return fake_sysfs.raid6(tmp_path)


def sensor(
    machine: fake_sysfs.FakeMachine, number: int, disk: str, text: str, name: str = "drivetemp"
) -> None:
    folder = f"sys/class/hwmon/hwmon{number}"
    machine.put(f"{folder}/name", name)
    machine.put(f"{folder}/temp1_input", text)
    (machine.root / folder / "device/block" / disk).mkdir(parents=True)


def test_only_disks_that_say_so_have_a_temperature(machine: fake_sysfs.FakeMachine) -> None:
    sensor(machine, 0, "sda", "41000")
    sensor(machine, 1, "sdb", "38500")
    sensor(machine, 2, "sdc", "")
    sensor(machine, 3, "sdd", "99000", name="coretemp")
    sensor(machine, 4, "sdz", "99000")
    assert temperatures(("sda", "sdb", "sdc", "sdd"), machine.root) == {"sda": 41.0, "sdb": 38.5}
    assert temperatures(("sda",), machine.root / "nowhere") == {}


def test_the_warmest_member_counts_and_has_to_cool_down(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    assert obstacles.too_warm(array, 50) == ""
    sensor(machine, 0, "sda", "30000")
    sensor(machine, 1, "sdb", "50000")
    assert obstacles.too_warm(array, 50) == ""
    assert "the disk sdb has 50 °C, and 47 °C" in obstacles.too_warm(array, 50, begun=True)
    (machine.root / "sys/class/hwmon/hwmon1/temp1_input").write_text("50600\n")
    assert obstacles.too_warm(array, 50) == (
        "the disk sdb has 51 °C, and 50 °C are wanted at the most"
    )


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("idle", ""),
        # Somebody has to thaw it.
        ("frozen", ""),
        ("recover", "a recovery of it is under way"),
        ("resync", "a resync of it is under way"),
        ("check", "another check of it is under way"),
        ("reshape", "a reshape of it is under way"),
    ],
)
def test_what_goes_before_a_check(machine: fake_sysfs.FakeMachine, action: str, text: str) -> None:
    machine.put("sys/block/md0/md/sync_action", action)
    assert obstacles.passing(find_array("md0", machine.root)) == text


def test_a_disk_in_place_of_another_makes_it_another_array(
    machine: fake_sysfs.FakeMachine,
) -> None:
    machine.put("sys/block/sda/wwid", "naa.1")
    before = obstacles.members(find_array("md0", machine.root))
    assert len(before) == 5
    machine.put("sys/block/sda/wwid", "naa.2")
    after = obstacles.members(find_array("md0", machine.root))
    assert len(set(before) & set(after)) == 4
    machine.put("sys/block/md0/md/dev-sda/state", "faulty")
    assert len(obstacles.members(find_array("md0", machine.root))) == 4


def test_how_far_a_check_goes(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    assert obstacles.size_sectors(array) == 130048 * 2
    machine.put("sys/block/md0/md/level", "raid10")
    # There it goes by the array's own addresses.
    assert obstacles.size_sectors(find_array("md0", machine.root)) == 780288


def test_a_reshape_of_the_layout_alone_makes_it_another_array(
    machine: fake_sysfs.FakeMachine,
) -> None:
    """It has moved the parity, so the places that were read hold something else."""
    array = find_array("md0", machine.root)
    before = obstacles.shape(array)
    assert before == "raid6, layout 2, 5 members, 64 KiB chunks, 260096 sectors"
    machine.put("sys/block/md0/md/layout", "0")
    assert obstacles.shape(array.now()) != before


def on_this_machine(machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch) -> Array:
    """An array whose members mdadm is asked about."""
    machine.put("sys/block/sda/wwid", "naa.1")
    monkeypatch.setattr(programs, "ADMINISTRATORS", (str(machine.root / "sbin"),))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return dataclasses.replace(find_array("md0", machine.root), root=Path("/"))


def mdadm(machine: fake_sysfs.FakeMachine, text: str) -> None:
    program = machine.put("sbin/mdadm", f"#!/bin/sh\n{text}")
    program.chmod(0o755)


def test_members_are_what_mdadm_added_them_as_and_what_their_disks_say(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = on_this_machine(machine, monkeypatch)
    mdadm(machine, 'echo "MD_UUID=x"; echo "MD_DEV_UUID=of $3"')
    added = tuple(f"of /dev/sd{letter}" for letter in "abcde")
    disk = array.members[0].hardware
    assert obstacles.members(array) == (f"{added[0]} {disk}", *added[1:])


@pytest.mark.parametrize(
    ("metadata", "last", "unseen"),
    [
        ("0.90", "recover", True),
        ("0.90", "check", False),
        ("1.2", "recover", False),
        ("1.2", "reshape", True),
    ],
)
def test_what_was_written_anew_since_the_newest_check_is_to_be_read_again(
    machine: fake_sysfs.FakeMachine, metadata: str, last: str, unseen: bool
) -> None:
    machine.put("sys/block/md0/md/metadata_version", metadata)
    machine.put("sys/block/md0/md/last_sync_action", last)
    assert obstacles.rewritten_unseen(find_array("md0", machine.root)) is unseen


def test_a_copy_of_a_disk_is_another_member(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It bears what mdadm wrote on the one before it."""
    array = on_this_machine(machine, monkeypatch)
    mdadm(machine, 'echo "MD_UUID=x"; echo "MD_DEV_UUID=of $3"')
    before = obstacles.members(array)
    machine.put("sys/block/sda/wwid", "naa.2")
    array = dataclasses.replace(find_array("md0", machine.root), root=Path("/"))
    assert obstacles.members(array) != before


def test_members_of_an_old_format_go_by_their_disks(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = on_this_machine(machine, monkeypatch)
    mdadm(machine, "echo MD_UUID=x")
    named = obstacles.members(array)
    assert named[1:] == ("sdb", "sdc", "sdd", "sde")
    mdadm(machine, "exit 1")
    assert obstacles.members(dataclasses.replace(array, metadata="none")) == named


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, r"needs mdadm \(`apt install mdadm`"),
        ("exit 1", "mdadm failed"),
        ("exec sleep 60", "mdadm did not answer within 0.2 s"),
    ],
)
def test_an_answer_that_cannot_be_had_is_no_other_answer(
    machine: fake_sysfs.FakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    why: str,
) -> None:
    array = on_this_machine(machine, monkeypatch)
    monkeypatch.setattr(programs, "MDADM_S", 0.2)
    if text is not None:
        mdadm(machine, text)
    with pytest.raises(RefusalError, match=f"about the member sda of /dev/md0: {why}"):
        obstacles.members(array)


def test_a_resync_that_only_waits_for_a_write_holds_up_no_check(
    machine: fake_sysfs.FakeMachine,
) -> None:
    """Nobody may write to that array for months, and a check gives way to it once it begins."""
    machine.array("md1", "raid1", ["sda", "sdb"])
    machine.put("sys/block/md1/md/array_state", "read-auto")
    machine.put("proc/mdstat", "md1 : active (auto-read-only) raid1\n      resync=PENDING\n")
    array = find_array("md0", machine.root)
    assert obstacles.passing(array) == ""
    assert "/dev/md1" not in obstacles.lasting(array)
    findings = checks.refusals(checks.check(array, read_stack(array)))
    assert any("`mdadm --readwrite /dev/md1`" in text for text in findings)
    machine.put("sys/block/md1/md/sync_action", "resync")
    assert obstacles.passing(array) == "/dev/md1 shares disks with /dev/md0 and runs a resync"
