"""How parity is computed."""

import os
from collections.abc import Iterator

from autotune.advice.array_facts import ArrayFacts
from autotune.advice.finding import FindingKind, Seen
from autotune.suggested import set_by_hand
from autotune.system import sysfs
from autotune.system.array import PARITY, Media

LEAST_PROCESSORS = 4


def _one_thread(facts: ArrayFacts) -> Iterator[Seen]:
    array = facts.array
    threads = sysfs.read_or(array.md / "group_thread_cnt", "")
    fast = all(member.media is Media.NVME for member in facts.members)
    many = (os.cpu_count() or 1) >= LEAST_PROCESSORS
    if array.level in PARITY and fast and many and threads == "0":
        if "group_thread_cnt" in facts.proven:
            return
        yield Seen(
            "One thread handles all stripes of this array of NVMe disks (group_thread_cnt 0).",
            (f"autotune run {array.device} --knobs group_thread_cnt --apply",),
            note="More threads are not always faster, so it measures before it keeps any. If it "
            "keeps none, silence this finding.",
        )


def _skip_copy(facts: ArrayFacts) -> Iterator[Seen]:
    file = facts.array.md / "skip_copy"
    if sysfs.read_or(file, "0") == "1":
        yield Seen(
            "The array writes data from where programs left it, without a copy (skip_copy 1).",
            (set_by_hand(file, 0),),
            note="Not while a sync runs. Then a check finds what differs already: "
            f"`autotune check {facts.array.device}`.",
        )


CHECKS = (
    FindingKind(
        "skip-copy",
        "skip_copy of a RAID 4, 5 or 6 is 1",
        "Data that changes on its way, as with O_DIRECT or under a filesystem that was mounted "
        "before, leaves a wrong parity. Other files of that stripe are lost when a disk fails.",
        "kernel drivers/md/raid5.c, raid5_store_skip_copy; fs/super.c, SB_I_STABLE_WRITES",
        _skip_copy,
    ),
    FindingKind(
        "one-thread",
        "a RAID 4, 5 or 6 of NVMe disks has one thread for its stripes (group_thread_cnt 0), "
        "where there are 4 processors or more; not where a profile in force sets it",
        "One thread can be busy before the disks are.",
        'kernel commit 851c30c9badf, "raid5: offload stripe handle to workqueue"',
        _one_thread,
    ),
)
