"""What is refused before a disk is looked at; the rest is in `tests/lab/guest_design.py`."""

from pathlib import Path

import pytest

from autotune.design import blank_disks
from autotune.design.blank_disks import Disk, find_disks
from autotune.design.workspace import LARGEST_BYTES, MIB, OFFSET_BYTES, TAIL_BYTES, slice_of
from autotune.errors import RefusalError, UsageError
from autotune.system.blockdev import Media


def disk(name: str, size_bytes: int = 1 << 40, media: Media = Media.HDD) -> Disk:
    return Disk(f"/dev/{name}", name, size_bytes, media, name, "")


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is named is a disk; /dev/link is another name of /dev/sdb."""
    names = {"/dev/link": "sdb"}
    monkeypatch.setattr(
        blank_disks, "_disk", lambda given: disk(names.get(given, Path(given).name))
    )


@pytest.mark.usefixtures("disks")
def test_disks_that_are_named_twice_under_any_name_are_taken() -> None:
    found = find_disks(["/dev/link", "/dev/sdc"], ["/dev/sdc", "/dev/sdb"])
    assert [each.name for each in found] == ["sdb", "sdc"]


@pytest.mark.usefixtures("disks")
@pytest.mark.parametrize(
    ("named", "again", "text"),
    [
        (["/dev/sdb", "/dev/sdc"], [], "--destructive does not name /dev/sdb"),
        (["/dev/sdb", "/dev/sdc"], ["/dev/sdb"], "--destructive does not name /dev/sdc"),
        (["/dev/sdb"], ["/dev/sdb", "/dev/sdc"], "names /dev/sdc, which is not among the disks"),
        (["/dev/sdb", "/dev/link"], ["/dev/sdb"], "/dev/sdb is named more than once"),
        (["/dev/sdb"], ["/dev/sdb"], "needs two disks"),
    ],
)
def test_what_is_not_named_twice_is_refused(named: list[str], again: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        find_disks(named, again)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("/dev/null", "is not a block device"),
        ("/dev", "is not a block device"),
        ("/dev/no-such", "cannot be looked at: No such file"),
    ],
)
def test_what_is_no_disk_is_refused(given: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        find_disks([given, "/dev/null"], [given])


def test_a_disk_that_is_gone_is_not_written_to() -> None:
    with pytest.raises(RefusalError, match="is gone, or another disk by now"):
        disk("no-such").look_again()


def test_a_slice_fits_the_smallest_disk_and_leaves_its_edges_alone() -> None:
    large, small = disk("sdb"), disk("sdc", 200 * MIB, Media.SSD)
    assert slice_of([large, large]) == LARGEST_BYTES[Media.HDD]
    size = slice_of([large, small])
    assert size % (4 * MIB) == 0
    assert OFFSET_BYTES + size + TAIL_BYTES <= small.size_bytes
    with pytest.raises(RefusalError, match="/dev/sdd is too small"):
        slice_of([large, disk("sdd", 60 * MIB)])
