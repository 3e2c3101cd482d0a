"""Who has set what a file reads: autotune, the kernel with it, mdadm or udev, or somebody else."""

from collections.abc import Collection
from pathlib import Path

from autotune.knobs.resets import after_switch, depths_of, resets
from autotune.knobs.reshape import MDADMS_MIN
from autotune.knobs.write_order import BOUNDS, CACHE, unsafe_now
from autotune.safety.journal import Journal
from autotune.safety.own_check import is_anothers_check
from autotune.safety.paths import is_of_applied
from autotune.safety.record import Record
from autotune.system import disk_originals, sysfs

QUEUE_DEPTH = "queue_depth"


def theirs(
    journal: Journal, write: sysfs.Write, reads: str, coming: Collection[Path]
) -> str | None:
    """What somebody else has set in a file that `reads` so; None if nobody has."""
    record, path = journal.record, write.path
    set_by_udev = is_of_applied(journal.path) and is_set_for_another(record, path, reads)
    # For a reshape, mdadm makes the cache larger, and leaves it so; what it raises it puts back.
    mdadms = (path.name == CACHE and unsafe_now(path)) or (path in coming and reads == MDADMS_MIN)
    return reads if (set_by_udev or _is_foreign(record, write, reads)) and not mdadms else None


def is_set_for_another(record: Record, path: Path, found: str) -> bool:
    """Whether udev has set a file of a disk since for another array, be it to the same."""
    note = disk_originals.noted(path)
    return note is not None and note.uuid != record.uuid and note.set_to == found


def lowers_itself(record: Record, path: Path) -> bool:
    """Whether the kernel may have lowered what we have set, and raises it again as far as that:
    SCSI does so with the depth of a disk whose queue is full (scsi_error.c, track_queue_depth)."""
    return path.name == QUEUE_DEPTH and str(path) in record.ours


def _is_foreign(record: Record, write: sysfs.Write, found: str) -> bool:
    """Whether what was found is neither the original nor what autotune may have put there."""
    name = str(write.path)
    if record.lost:
        return False
    if record.checking and write.path.name in BOUNDS:
        return found != write.text and is_anothers_check(write.path.parent, record)
    if record.moved and name not in record.ours and write.path.name in BOUNDS:
        # Ours is stopped by now; another one goes by what its owner has set.
        runs = sysfs.read_or(write.path.parent / "sync_action", "idle") == "check"
        return found != write.text and runs
    known = ["", write.text, *record.ours.get(name, ())]
    if write.path.name == "async_depth":
        length = str(sysfs.device(write.path) / "queue/nr_requests")
        lengths = [*record.ours.get(length, ()), record.originals.get(length, "")]
        # It follows the length of the queue, or the one before (block/mq-deadline.c,
        # dd_depth_updated; seen on 6.1.176).
        known += [depth for text in lengths if text for depth in depths_of(text)]
    scheduler = sysfs.device(write.path) / "queue/scheduler"
    back = record.originals.get(str(scheduler), "")
    if resets(scheduler, write.path) and _somebody_switched_back(record, scheduler, back):
        known.append(after_switch(write.path, back))
    if lowers_itself(record, write.path) and found.isdecimal():
        return int(found) > max(int(text) for text in known if text.isdecimal())
    return found not in known and name not in record.reset


def _somebody_switched_back(record: Record, scheduler: Path, back: str) -> bool:
    """Whether the original scheduler is in force again by somebody else's doing. But for ours,
    that would have reset nothing."""
    ours = record.ours.get(str(scheduler), ())
    return bool(back) and back not in ours[-1:] and bool(ours) and sysfs.value(scheduler) == back
