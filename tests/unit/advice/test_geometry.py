"""Filesystems that know the stripe, or do not."""

from pathlib import Path

import fake_sysfs
import pytest
from advice_looks import MD, array, found, look, only

from autotune.system import layers

STRIPE_SECTORS = 3 * 128
"""Of five disks with two of parity, in chunks of 64 KiB."""


NO_WIDTH = "Block size:               4096\n"


RIGHT = NO_WIDTH + "RAID stride:              16\nRAID stripe width:        48\n"


OTHER = NO_WIDTH + "RAID stride:              16\nRAID stripe width:        32\n"


@pytest.mark.parametrize(
    ("said", "words"), [(NO_WIDTH, "knows no stripe"), (OTHER, "made for a stripe of 128 KiB")]
)
def test_an_ext4_that_does_not_know_the_stripe(
    tmp_path: Path, tools: dict[str, str], said: str, words: str
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mount("md0", Path("/srv"))
    tools["dumpe2fs"] = RIGHT
    assert found(machine) == []
    tools["dumpe2fs"] = said
    finding = only(machine, "ext4-stripe")
    assert words in finding.seen
    assert finding.commands == ("tune2fs -E stride=16,stripe_width=48 /dev/md0",)
    assert finding.live


def test_an_ext4_that_is_mounted_with_the_stripe_is_right(
    tmp_path: Path, tools: dict[str, str]
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mount("md0", Path("/srv"), options=("rw,relatime", "rw,stripe=48"))
    tools["dumpe2fs"] = NO_WIDTH
    assert found(machine) == []


@pytest.mark.parametrize("level", ["raid1", "raid10", "raid0"])
def test_without_parity_a_stripe_is_not_asked_for(
    tmp_path: Path, tools: dict[str, str], level: str
) -> None:
    machine = array(tmp_path, level, 4)
    machine.mount("md0", Path("/srv"))
    machine.mount("md0", Path("/data"), "xfs")
    tools["dumpe2fs"] = NO_WIDTH
    assert look(machine).findings == ()


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ("sunit=128,swidth=256", "mount -o sunit=128,swidth=384 /dev/md0 '/my data'"),
        (
            "sunit=128,swidth=256,usrquota,nouuid",
            "mount -o nouuid,usrquota,sunit=128,swidth=384 /dev/md0 '/my data'",
        ),
        ("sunit=32,swidth=64", ""),
        ("noalign", "mount /dev/md0 '/my data'"),
        ("noalign,prjquota", "mount -o prjquota /dev/md0 '/my data'"),
        ("", ""),
        ("sunit=96,swidth=192", ""),
    ],
)
def test_an_xfs_that_does_not_know_the_stripe(tmp_path: Path, options: str, command: str) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    own = f"rw,attr2,{options}".strip(",")
    machine.mount("md0", Path("/my\\040data"), "xfs", options=("rw,relatime", own))
    finding = only(machine, "xfs-stripe")
    assert finding.commands == ((f"umount '/my data' && {command}",) if command else ())
    assert finding.live == (not command)


def test_an_xfs_is_mounted_again_with_all_it_had_and_whole(tmp_path: Path) -> None:
    machine, own = fake_sysfs.raid6(tmp_path), "rw,attr2,inode64,sunit=128,swidth=256,noquota"
    machine.mount("md0", Path("/export"), "xfs", options=("rw,relatime", own), root="/public")
    finding = only(machine, "xfs-stripe")
    assert finding.commands == ()
    assert "Only a folder of it is mounted here" in finding.note
    machine.mount("md0", Path("/srv"), "xfs", options=("ro,nosuid,nodev,noexec,noatime", own))
    finding = only(machine, "xfs-stripe")
    assert finding.commands == (
        "umount /srv && mount -o noatime,nodev,noexec,nosuid,ro,sunit=128,swidth=384 /dev/md0 /srv",
    )
    assert "It is mounted on /export too: unmount that before" in finding.note


@pytest.mark.parametrize("options", ["sunit=128,swidth=384", "sunit=384,swidth=384"])
def test_an_xfs_that_fits(tmp_path: Path, options: str) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mount("md0", Path("/srv"), "xfs", options=("rw,relatime", f"rw,{options}"))
    assert found(machine) == []


def test_a_filesystem_that_is_spread_over_others_is_not_judged(
    tmp_path: Path, tools: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mapped("dm-0", "LVM-abc", "vg0-home", "md0")
    machine.mount("dm-0", Path("/home"), "xfs")
    tools["pvs"] = f" {STRIPE_SECTORS * 512 * 8} vg0\n"
    monkeypatch.setattr(layers, "targets", lambda *_: ("thin",))
    assert found(machine) == []
    monkeypatch.setattr(layers, "targets", lambda *_: ("linear",))
    assert only(machine, "xfs-stripe")


def test_a_stripe_that_changes_is_not_judged(tmp_path: Path, tools: dict[str, str]) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mount("md0", Path("/srv"))
    tools["dumpe2fs"] = NO_WIDTH
    machine.put(f"{MD}/reshape_position", "4096")
    advice = look(machine)
    assert advice.findings == ()
    assert "the array is being reshaped" in {each.reason for each in advice.not_looked_at}
