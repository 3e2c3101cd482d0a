"""How busy an array's disks are without us."""

from pathlib import Path

import pytest
from fake_sysfs import raid6

from autotune.service.quiet_time import busy_share
from autotune.system.array import read_array


def test_the_busiest_disk_of_the_array_counts(tmp_path: Path) -> None:
    root = raid6(tmp_path).root
    array = read_array("md0", root)

    def worked(disk: str, busy_ms: int) -> None:
        # As /proc/diskstats has them: the tenth number is the time in which it was busy, in ms.
        numbers = [5, 0, 40, 7, 9, 0, 72, 8, 0, busy_ms, 15]
        (root / "sys/block" / disk / "stat").write_text(" ".join(map(str, numbers)))

    def meanwhile(seconds: float) -> None:
        assert seconds == 100.0
        worked(first, 1000 + 20_000)
        worked(second, 70_000 + 30_000)

    first, second, *_ = array.disks
    worked(first, 1000)
    worked(second, 70_000)
    assert busy_share(array, 100.0, meanwhile) == pytest.approx(0.30)
