"""What begins at the right place, and what does not."""

from pathlib import Path

import fake_sysfs
import pytest
from advice_looks import MD, found, only
from fake_sysfs import FakeMachine

from autotune.suggested import as_root
from autotune.system import layers

STRIPE_SECTORS = 3 * 128
"""Of five disks with two of parity, in chunks of 64 KiB."""


def test_a_partition_on_the_array(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.partition("md0", "md0p1")
    machine.put("sys/block/md0/md0p1/start", "2048")
    machine.put("sys/block/md0/md0p1/size", str(1 << 20))
    finding = only(machine, "partition-alignment")
    assert "1024 KiB" in finding.seen
    assert "stripe of 192 KiB" in finding.seen
    assert finding.commands == ("echo 'start=2304, size=+' | " + as_root("sfdisk -N 1 /dev/md0"),)
    assert not finding.live
    machine.put("sys/block/md0/md0p1/size", "4096")
    assert found(machine) == [], "one for booting"


def test_a_member_that_is_a_misaligned_partition(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    for disk in ("sda", "sdb"):
        machine.disk(disk)
        machine.put(f"sys/block/{disk}/queue/physical_block_size", "4096")
        machine.partition(disk, f"{disk}1")
        machine.put(f"sys/block/{disk}/{disk}1/start", "63" if disk == "sdb" else "2048")
    machine.array("md0", "raid1", ["sda1", "sdb1"])
    for name in ("sda1", "sdb1"):
        machine.put(f"{MD}/dev-{name}/offset", "2048")
    finding = only(machine, "member-alignment")
    assert "sdb1" in finding.seen
    machine.put("sys/block/sdb/queue/physical_block_size", "512")
    assert found(machine) == [], "old disks do not mind"


def test_lvm_and_crypt_that_begin_at_the_wrong_place(
    tmp_path: Path, tools: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mapped("dm-0", "LVM-abc", "vg0-home", "md0")
    machine.mapped("dm-1", "CRYPT-LUKS2-abc", "home_crypt", "dm-0")
    offset = STRIPE_SECTORS * 100
    monkeypatch.setattr(
        layers,
        "table",
        lambda *_: [["0", "9", "crypt", "aes-xts", ":64:key", "0", "253:0", str(offset)]],
    )
    tools["pvs"] = f"  {STRIPE_SECTORS * 512}  vg0\n"
    assert found(machine) == []
    tools["pvs"] = "  1048576  vg0\n"
    assert "pvcreate --dataalignment 192k /dev/md0" in only(machine, "lvm-alignment").commands
    tools["pvs"] = f"  {STRIPE_SECTORS * 512}  vg0\n"
    offset = 4096
    finding = only(machine, "crypt-alignment")
    assert "begin at 2048 KiB" in finding.seen
    assert not finding.live
