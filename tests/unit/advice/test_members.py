"""Members that fit together, or do not."""

from pathlib import Path

import fake_sysfs
import pytest
from advice_looks import MD, array, found, only
from fake_sysfs import FakeMachine

from autotune.advice import advise as advising
from autotune.advice.advise import advise
from autotune.suggested import set_by_hand
from autotune.system.array import find_array


def test_two_members_on_one_disk(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    for disk in ("sda", "sdb"):
        machine.disk(disk)
        for number in (1, 2):
            machine.partition(disk, f"{disk}{number}")
    machine.array("md0", "raid5", ["sda1", "sda2", "sdb1"])
    finding = only(machine, "same-disk")
    assert "sda1 and sda2" in finding.seen
    assert "mdadm /dev/md0 --replace /dev/sda2 --with NEW" in finding.commands


def shared(root: Path, rotational: bool, sectors: int) -> FakeMachine:
    machine = FakeMachine(root)
    for disk in ("sda", "sdb"):
        machine.disk(disk, rotational)
        machine.put(f"sys/block/{disk}/size", str(1 << 30))
        for number, size in ((1, 1 << 29), (2, sectors)):
            name = f"{disk}{number}"
            machine.partition(disk, name)
            machine.put(f"sys/block/{disk}/{name}/size", str(size))
    machine.array("md0", "raid1", ["sda1", "sdb1"])
    machine.array("md1", "raid1", ["sda2", "sdb2"])
    return machine


def test_hard_disks_shared_with_another_array(tmp_path: Path) -> None:
    finding = only(shared(tmp_path / "hdd", True, 1 << 28), "shared-disk")
    assert "/dev/md1 lies on the same hard disks: sda and sdb" in finding.seen
    assert finding.commands == ()
    assert found(shared(tmp_path / "ssd", False, 1 << 28)) == []
    assert found(shared(tmp_path / "boot", True, 1 << 21)) == []


def test_an_array_of_arrays_shares_nothing(tmp_path: Path) -> None:
    machine = array(tmp_path, "raid1", 2)
    machine.array("md1", "raid0", ["md0"])
    assert found(machine) == []


def mixed(root: Path, level: str) -> FakeMachine:
    machine = FakeMachine(root)
    machine.disk("sda")
    machine.disk("sdb", rotational=False)
    machine.array("md0", level, ["sda", "sdb"])
    return machine


def test_mixed_media(tmp_path: Path) -> None:
    machine = mixed(tmp_path / "1", "raid1")
    finding = only(machine, "mixed-media")
    assert finding.commands == (set_by_hand("/sys/block/md0/md/dev-sda/state", "writemostly"),)
    machine.put(f"{MD}/dev-sda/state", "in_sync,write_mostly")
    assert found(machine) == []
    assert (
        "mdadm /dev/md0 --add NEW" in only(mixed(tmp_path / "10", "raid10"), "mixed-media").commands
    )


def test_a_journal_of_flash_is_no_mixture(tmp_path: Path) -> None:
    machine = mixed(tmp_path, "raid5")
    machine.put(f"{MD}/dev-sdb/state", "journal")
    assert found(machine) == []


@pytest.mark.parametrize(("speed", "slow"), [(60, True), (75, False), (100, False)])
def test_a_slow_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, speed: int, slow: bool
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    speeds = {f"sd{letter}": 100_000 for letter in "abcde"} | {"sdd": speed * 1000}
    monkeypatch.setattr(advising.measured, "speeds", lambda _: (speeds, ""))
    findings = advise(find_array("md0", machine.root), tmp_path).findings
    assert [finding.name for finding in findings] == ["slow-member"] * slow
    if slow:
        assert "sdd reads at 0.60 of the others (61.4 MB/s against 102 MB/s)" in findings[0].seen
