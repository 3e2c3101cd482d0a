"""Mount options."""

from pathlib import Path

import pytest
from advice_looks import array, found, only


@pytest.mark.parametrize(
    ("options", "own", "strict"),
    [
        ("rw", "rw", True),
        ("rw,nodiratime", "rw", True),
        ("rw,relatime", "rw", False),
        ("rw,noatime", "rw", False),
        ("ro", "ro", False),
        ("rw", "rw,lazytime", False),
    ],
)
def test_strictatime(tmp_path: Path, options: str, own: str, strict: bool) -> None:
    machine = array(tmp_path, "raid1", 2)
    machine.mount("md0", Path("/srv"), options=(options, own))
    if strict:
        assert only(machine, "strictatime").commands == ("mount -o remount,relatime /srv",)
    else:
        assert found(machine) == []


def test_discard_counts_only_where_it_reaches_the_disks(tmp_path: Path) -> None:
    machine = array(tmp_path, "raid1", 2, rotational=False)
    machine.mount("md0", Path("/srv"), options=("rw,relatime", "rw,discard"))
    assert found(machine) == []
    machine.put("sys/block/md0/queue/discard_max_bytes", str(1 << 30))
    finding = only(machine, "online-discard")
    assert finding.commands[0] == "mount -o remount,nodiscard /srv"
    assert finding.live


def test_an_xfs_with_discard_keeps_its_other_options(tmp_path: Path) -> None:
    machine = array(tmp_path, "raid1", 2, rotational=False)
    machine.put("sys/block/md0/queue/discard_max_bytes", str(1 << 30))
    options = ("rw,nosuid,noexec,relatime", "rw,attr2,discard,usrquota")
    machine.mount("md0", Path("/srv"), "xfs", options=options)
    finding = only(machine, "online-discard")
    assert finding.commands[0] == "umount /srv && mount -o noexec,nosuid,usrquota /dev/md0 /srv"
    assert not finding.live
