"""How the members' disks are driven."""

from pathlib import Path

import fake_sysfs
import pytest
from advice_looks import choose, found, nvmes, only
from fake_sysfs import FakeMachine

from autotune.advice import advise as advising
from autotune.suggested import set_by_hand


def test_ncq_that_is_off(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("sys/block/sda/device/queue_depth", "1")
    assert found(machine) == [], "a controller that cannot do it"
    machine.put("sys/block/sda/device/ncq_prio_enable", "0")
    machine.put("sys/block/sdb/device/ncq_prio_enable", "0")
    machine.put("sys/block/sdb/device/queue_depth", "32")
    finding = only(machine, "queue-depth")
    assert finding.commands == (set_by_hand("/sys/block/sda/device/queue_depth", 31),)


def test_write_caches_that_differ(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    for letter in "abcde":
        machine.put(f"sys/block/sd{letter}/queue/write_cache", "write through")
        machine.put(f"sys/block/sd{letter}/device/vendor", "ATA")
    assert found(machine) == []
    for letter in "abd":
        machine.put(f"sys/block/sd{letter}/queue/write_cache", "write back")
    finding = only(machine, "write-cache")
    assert finding.commands == ("hdparm -W 1 /dev/sdc", "hdparm -W 1 /dev/sde")


def ata(machine: FakeMachine, disk: str, port: int, speed: str, model: str = "WDC") -> None:
    folder = f"sys/devices/pci0/ata{port}/host{port}/target/0"
    machine.put(f"{folder}/model", model)
    (machine.root / f"sys/block/{disk}/device").symlink_to(machine.root / folder)
    machine.put(f"sys/class/ata_link/link{port}/sata_spd", speed)


def test_a_sata_link_that_fell_back(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    for port, letter in enumerate("abc", 1):
        ata(machine, f"sd{letter}", port, "6.0 Gbps")
    ata(machine, "sdd", 4, "3.0 Gbps", "an older model")
    assert found(machine) == []
    ata(machine, "sde", 5, "1.5 Gbps")
    assert "The link of sde runs at 1.5 Gbps" in only(machine, "link-speed").seen


def test_a_pcie_link_that_lost_lanes(tmp_path: Path) -> None:
    machine = nvmes(tmp_path, "raid10")
    assert found(machine) == []
    machine.put("sys/block/nvme1n1/device/device/current_link_width", "1")
    seen = only(machine, "link-speed").seen
    assert "nvme1n1 runs at 16.0 GT/s ×1" in seen
    assert "16.0 GT/s ×4" in seen


def test_a_scheduler_unlike_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    choose(machine, "sdc", "bfq")
    finding = only(machine, "scheduler")
    assert finding.commands == (set_by_hand("/sys/block/sdc/queue/scheduler", "mq-deadline"),)
    monkeypatch.setattr(advising, "_proven", lambda *_: frozenset({"scheduler"}))
    assert found(machine) == [], "what a profile in force sets is proven"


def test_a_volume_has_no_scheduler_that_disks_could_differ_from(tmp_path: Path) -> None:
    """On 6.1 it has the files of a queue all the same."""
    machine = FakeMachine(tmp_path)
    machine.disk("sda")
    machine.disk("sdb")
    machine.mapped("dm-0", "LVM-abc", "vg-m1", "sdb")
    for file, text in {"scheduler": "[none]", "write_cache": "write back"}.items():
        machine.put(f"sys/block/dm-0/queue/{file}", text)
    machine.put("sys/block/sda/queue/write_cache", "write through")
    machine.array("md0", "raid1", ["dm-0", "sda"])
    assert found(machine) == []


def test_bfq_on_nvme(tmp_path: Path) -> None:
    machine = nvmes(tmp_path, "raid10")
    for number in range(3):
        choose(machine, f"nvme{number}n1", "bfq")
    findings = found(machine)
    assert [finding.name for finding in findings] == ["scheduler"] * 3
    assert findings[0].commands == (set_by_hand("/sys/block/nvme0n1/queue/scheduler", "none"),)
