"""/proc/mdstat as the kernel writes it: where a sync is."""

import pytest

from autotune.system.mdstat import sync_position_kib

MDSTAT = """Personalities : [raid6] [raid5] [raid4] [raid1]
md127 : active raid1 sdb1[1] sda1[0]
      523712 blocks super 1.2 [2/2] [UU]
      [==>..................]  check = 12.1% (63616/523712) finish=0.1min speed=63616K/sec

md1 : active raid5 vdc[3] vdb[1] vda[0]
      2093056 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/3] [UUU]
      \tresync=DELAYED

md0 : active raid6 vde[4] vdd[3] vdc[2] vdb[1] vda[0]
      3139584 blocks super 1.2 level 6, 64k chunk, algorithm 2 [5/5] [UUUUU]
      [>....................]  recovery =  0.5% (5888/1046528) finish=2.9min speed=5888K/sec
      bitmap: 0/8 pages [0KB], 65536KB chunk

unused devices: <none>
"""


@pytest.mark.parametrize(
    ("name", "position"),
    [
        ("md127", (63616, 523712)),
        ("md1", None),
        ("md0", (5888, 1046528)),
        ("md12", None),
        ("md", None),
        (".*", None),
    ],
)
def test_each_array_has_its_own_position(name: str, position: tuple[int, int] | None) -> None:
    assert sync_position_kib(MDSTAT, name) == position


def test_nothing_is_found_in_nothing() -> None:
    assert sync_position_kib("", "md0") is None
