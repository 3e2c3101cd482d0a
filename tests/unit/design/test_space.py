"""Which shapes there are, and what each means for capacity, failures and filesystems."""

import pytest

from autotune.design.commands import commands
from autotune.design.shape import CHUNKS_KIB, Shape
from autotune.design.space import Space, space
from autotune.errors import UsageError
from autotune.measure.workload import load_workload

TIB = 1 << 40


def test_every_shape_is_allowed_and_has_one_setting() -> None:
    found = space(5)
    assert found.levels == ("raid6", "raid5", "raid10")
    shapes = found.shapes
    # RAID 6 has two layouts, RAID 5 two with two consistencies, RAID 10 three.
    assert len(shapes) == len(CHUNKS_KIB) * (2 + 2 * 2 + 3)
    assert len(set(shapes)) == len(shapes)
    assert all(Shape.of(shape.setting) == shape for shape in shapes)
    assert found.default == Shape("raid6", "left-symmetric", 512, "bitmap")


def test_what_means_nothing_for_a_level_has_one_value() -> None:
    found = space(2)
    assert found.levels == ("raid10", "raid1")
    assert [shape for shape in found.shapes if shape.level == "raid1"] == [
        Shape("raid1", "none", 512, "bitmap")
    ]
    assert not any(shape.consistency == "ppl" for shape in found.shapes)


def test_without_a_bitmap_only_if_asked() -> None:
    assert not any(shape.consistency == "resync" for shape in space(5).shapes)
    asked = space(5, ["raid6"], ["resync"])
    assert {shape.consistency for shape in asked.shapes} == {"resync"}


@pytest.mark.parametrize(
    ("disks", "levels", "consistencies", "text"),
    [
        (3, ["raid6"], [], "needs 4 disks, and 3 are named"),
        (5, ["raid0"], [], 'no RAID level that a design can have called "raid0"'),
        (5, ["raid6"], ["ppl"], "Only raid5 can have the consistency ppl"),
        (5, [], ["bitmaps"], 'did you mean "bitmap"'),
        (2, ["raid1"], ["bitmap"], "There is nothing to choose"),
    ],
)
def test_what_cannot_be_is_refused(
    disks: int, levels: list[str], consistencies: list[str], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        space(disks, levels, consistencies)


def test_a_consistency_moves_only_what_writes() -> None:
    phases = load_workload("balanced").phases
    moved = {d.knob: d.moves for d in space(5).dimensions(phases)}
    assert "read.throughput" in moved["chunk_kib"]
    assert "read.throughput" not in moved["consistency"]
    assert "write.throughput" in moved["consistency"]


@pytest.mark.parametrize(
    ("level", "layout", "disks", "capacity", "survives", "width"),
    [
        ("raid1", "none", 2, 1.0, 1, 1),
        ("raid1", "none", 3, 1.0, 2, 1),
        ("raid5", "left-symmetric", 5, 4.0, 1, 4),
        ("raid6", "left-symmetric", 5, 3.0, 2, 3),
        ("raid10", "n2", 4, 2.0, 1, 2),
        ("raid10", "n2", 5, 2.5, 1, 5),
        ("raid10", "f2", 4, 2.0, 1, 4),
    ],
)
def test_capacity_failures_and_stripe(
    level: str, layout: str, disks: int, capacity: float, survives: int, width: int
) -> None:
    shape = Shape(level, layout, 64, "bitmap")
    assert shape.capacity_bytes(disks, TIB) == int(capacity * TIB)
    assert shape.survives(disks) == survives
    assert shape.width(disks) == width


def test_the_commands_say_all_that_was_measured() -> None:
    disks = [f"/dev/sd{letter}" for letter in "bcdef"]
    found = commands(Shape("raid6", "left-symmetric", 64, "bitmap"), "/dev/md0", disks, "u-u")
    assert found.mdadm == (
        "mdadm --create /dev/md0 --metadata=1.2 --level=raid6 --raid-devices=5 --chunk=64K "
        "--layout=left-symmetric --bitmap=internal /dev/sdb /dev/sdc /dev/sdd /dev/sde /dev/sdf"
    )
    assert found.ext4 == "mkfs.ext4 -E stride=16,stripe_width=48 -U u-u /dev/md0"
    assert found.xfs == "mkfs.xfs -d su=64k,sw=3 -m uuid=u-u /dev/md0"
    assert found.ext4_fstab.startswith("UUID=u-u /srv/array ext4 ")
    assert "--bitmap=none" in Shape("raid5", "left-symmetric", 64, "resync").mdadm_words(5)
    assert "--consistency-policy=ppl" in Shape("raid5", "left-symmetric", 64, "ppl").mdadm_words(5)
    mirror = commands(Shape("raid1", "none", 512, "bitmap"), "/dev/md0", disks[:2], "u-u")
    assert "chunk" not in mirror.mdadm
    assert mirror.ext4 == "mkfs.ext4 -U u-u /dev/md0"


def test_the_default_has_a_consistency_that_is_allowed() -> None:
    found = Space(("raid5",), ("ppl", "resync"))
    assert found.default.consistency == "ppl"
    assert found.allowed(found.default.setting)
