"""What a check waits for, and of which array it is."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.checking import obstacles
from autotune.system.array import find_array
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
    assert "the disk sdb has 50 °C, and 47 °C" in obstacles.too_warm(array, 50, was=True)
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
        ("check", "a check of it is under way"),
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
    assert obstacles.shape(array) == "raid6, 5 members, 64 KiB chunks, 260096 sectors"
    machine.put("sys/block/md0/md/level", "raid10")
    # There it goes by the array's own addresses.
    assert obstacles.size_sectors(find_array("md0", machine.root)) == 780288
