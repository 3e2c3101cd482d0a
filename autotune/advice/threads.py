"""How many threads compute parity."""

import os
from collections.abc import Iterator

from autotune.advice.finding import Check, Seen
from autotune.advice.scene import PARITY_DISKS, Scene
from autotune.system import sysfs
from autotune.system.array import Media

LEAST_PROCESSORS = 4


def _one_thread(scene: Scene) -> Iterator[Seen]:
    array = scene.array
    threads = sysfs.read_or(array.md / "group_thread_cnt", "")
    fast = all(member.media is Media.NVME for member in scene.members)
    many = (os.cpu_count() or 1) >= LEAST_PROCESSORS
    if array.level in PARITY_DISKS and fast and many and threads == "0":
        if "group_thread_cnt" in scene.proven:
            return
        yield Seen(
            "One thread handles all stripes of this array of NVMe disks (group_thread_cnt 0).",
            (f"autotune run {array.device} --knobs group_thread_cnt --apply",),
            note="More threads are not always faster, so it measures before it keeps any. If it "
            "keeps none, silence this finding.",
        )


CHECKS = (
    Check(
        "one-thread",
        "a RAID 4, 5 or 6 of NVMe disks has one thread for its stripes (group_thread_cnt 0), "
        "where there are 4 processors or more; not where a profile in force sets it",
        "One thread can be busy before the disks are.",
        'kernel commit 851c30c9badf, "raid5: offload stripe handle to workqueue"',
        _one_thread,
    ),
)
