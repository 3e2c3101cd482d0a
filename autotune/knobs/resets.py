"""What the kernel changes beside a setting that is written."""

from collections.abc import Iterable
from pathlib import Path

from autotune.knobs import iosched
from autotune.knobs.scheduler import requests_after_switch
from autotune.system import sysfs

RAISING = ("max_sectors_kb",)
"""What sets the read-ahead of its device to the default, too: since Linux 6.9
(block/blk-settings.c, blk_apply_bdi_limits), on 7.2.7 where it was lower."""
DEPTHS = ("iosched/async_depth", "async_depth")
"""Where a disk's queue has mq-deadline's depth: kernel block/mq-deadline.c, dd_depth_updated; the
second since Linux 7."""
_RESET_BY_SCHEDULER = ("nr_requests", "wbt_lat_usec", "async_depth")
_RESET_BY = {
    "nr_requests": ("async_depth",),
    **dict.fromkeys(RAISING, ("read_ahead_kb",)),
    # One number, in ms and in µs (block/bfq-iosched.c).
    "strict_guarantees": ("slice_idle", "slice_idle_us"),
    "slice_idle": ("slice_idle_us",),
    "slice_idle_us": ("slice_idle",),
}


def resets(path: Path, other: Path) -> bool:
    """Whether the kernel may change the other file too when one is written."""
    if path.name == "scheduler":
        reset = sysfs.is_schedulers_own(other) or other.name in _RESET_BY_SCHEDULER
    else:
        reset = other.name in _RESET_BY.get(path.name, ())
    return reset and sysfs.device(path) == sysfs.device(other)


def after_switch(path: Path, scheduler: str) -> str:
    """What a switch to this scheduler makes of a file of its disk; "" if that is not known."""
    if path.name == "nr_requests":
        return str(requests_after_switch(sysfs.device(path), scheduler) or "")
    own = {knob.file: str(knob.kernel_default) for knob in iosched.ALL}
    return own.get(str(path.relative_to(sysfs.device(path))), "")


def depths_of(length: str) -> tuple[str, str]:
    """What mq-deadline's `async_depth` may be with a queue of this length: that, or, before Linux
    6.10 and its stable kernels, three quarters of it."""
    return length, str(max(1, 3 * int(length) // 4))


def depth_back(reads: str, ours: Iterable[str], back: str) -> str:
    """What `async_depth` was, which nobody has recorded, where it `reads` so, the queue had `ours`
    as lengths meanwhile, and gets its length `back`. It may be of the length before the last one:
    a store of the length calls the scheduler first (block/blk-mq.c, blk_mq_update_nr_requests;
    seen on 6.1.176)."""
    if reads in depths_of(back):
        return reads
    for length in ours:
        if reads in depths_of(length):
            return depths_of(back)[depths_of(length).index(reads)]
    return reads
