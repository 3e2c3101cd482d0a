"""How much of a sync was done."""

from pathlib import Path

import fake_sysfs

from autotune.measure.sync_progress import Progress
from autotune.system.array import find_array

SIZE_KIB = 100_000_000


def test_what_a_bitmap_lets_a_resync_skip_is_not_done(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    now_s = 0.0

    def at(done_kib: int) -> None:
        shown = f"resync = 1.0% ({done_kib}/{SIZE_KIB}) finish=1.0min"
        machine.put("proc/mdstat", f"md0 : active raid6 sda[0]\n      [>....]  {shown}\n")

    at(1000)
    progress = Progress(find_array("md0", tmp_path), lambda: now_s)
    assert progress.look() == 0
    now_s = 1.0
    at(101_000)
    assert progress.look() == 100_000
    # No disk syncs 50 GB in a fiftieth of a second.
    now_s = 1.02
    at(50_101_000)
    assert progress.look() == 100_000
    assert progress.share > 0.5
    now_s = 2.0
    at(50_151_000)
    assert progress.look() == 150_000


def test_a_burst_counts(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    now_s = 0.0
    line = "md0 : active raid6 sda[0]\n      [>....]  resync = 1.0% ({}/{}) finish=1.0min\n"
    machine.put("proc/mdstat", line.format(0, SIZE_KIB))
    progress = Progress(find_array("md0", tmp_path), lambda: now_s)
    progress.look()
    now_s = 0.004
    machine.put("proc/mdstat", line.format(8192, SIZE_KIB))
    assert progress.look() == 8192
