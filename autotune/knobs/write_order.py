"""Whole settings: what goes together, and the order in which it is safe to write it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autotune.errors import InfeasibleError
from autotune.knobs import iosched
from autotune.knobs.base import Knob, read_aheads
from autotune.knobs.resets import RAISING, resets
from autotune.knobs.reshape import MIN, is_reshaping
from autotune.knobs.scheduler import NONE, queue_depth
from autotune.problem.setting import Setting
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sync import SPEEDS
from autotune.system.sysfs import Write

_FIRST = (
    *("scheduler", "nr_requests", "max_sectors_kb", "wbt_lat_usec", "stripe_cache_size"),
    *("sync_min", "strict_guarantees"),
)
"""A switch of the scheduler resets nr_requests, wbt_lat_usec and its own settings, which come after
all of these; nr_requests resets async_depth. The cache bounds preread_bypass_threshold; a sync_max
below sync_min is refused. bfq's strict_guarantees raises its slice_idle (seen on 6.1.176)."""
CACHE = "stripe_cache_size"
BOUNDS = ("sync_min", "sync_max")
OF_REDUNDANCY = (*BOUNDS, *SPEEDS, "sync_io_depth")
"""What is the array's own, whatever its level, but is seen only while it has redundancy."""
WAITING = (*BOUNDS, "group_thread_cnt", CACHE, MIN)
"""What cannot be put back while a sync runs: the kernel refuses the bounds, and may hang over the
threads. The cache waits for the end of a reshape alone, and so does what mdadm sets for one."""


def consistent(array: Array, setting: Setting) -> str | None:
    """None if the values go together, else a sentence saying which do not.

    A knob that the setting leaves out counts as it is on the array now, but for
    `preread_bypass_threshold`: the kernel compares it with the cache only as it is stored itself.
    """

    def number(knob: str) -> int | None:
        if knob in setting:
            return int(setting[knob])
        text = sysfs.read_or(array.md / knob, "").split(" ")[0]
        return int(text) if text.isdigit() else None

    low, high = number("sync_speed_min"), number("sync_speed_max")
    if low is not None and high is not None and low > high:
        return f"sync_speed_min {low} is above sync_speed_max {high}."
    cache, bypass = number("stripe_cache_size"), int(setting.get("preread_bypass_threshold", 0))
    if cache is not None and bypass > cache:
        return f"preread_bypass_threshold {bypass} is above stripe_cache_size {cache}."
    if setting.get("scheduler") == NONE and "nr_requests" in setting:
        for disk in array.disks:
            depth = queue_depth(array, disk)
            if depth is not None and int(setting["nr_requests"]) > depth:
                return (
                    f"With the scheduler none, nr_requests {setting['nr_requests']} is above the "
                    f"{depth} that {disk} takes at once."
                )
    return iosched.out_of_place(array, setting)


def plan(array: Array, setting: Setting, knobs: Iterable[Knob]) -> list[Write]:
    """The stores that bring the array from what it is now to the setting, in a safe order.

    Stores that would change nothing are left out. Raise InfeasibleError if a value is out of its
    range, the values do not go together, or one must not be written at this moment.
    """
    by_name = {knob.name: knob for knob in knobs}
    unknown = sorted(set(setting) - set(by_name))
    if unknown:
        raise InfeasibleError(f"{array.device} has no setting {', '.join(unknown)}.")
    for name, value in setting.items():
        reason = by_name[name].valid(array, value)
        if reason:
            raise InfeasibleError(reason)
    reason = consistent(array, setting)
    if reason:
        raise InfeasibleError(reason)
    writes: list[Write] = []
    for name in sorted(setting, key=rank):
        more = by_name[name].writes(array, setting[name])
        # The setting's own queue length replaces the remembered one.
        later = {write.path for write in more}
        writes = [w for w in writes if w.path not in later] + more
    writes += _kept_beside(writes)
    # What comes back with a scheduler has its place among the others.
    writes.sort(key=lambda write: rank(write.path.name))
    writes = _needed(_speeds_in_order(writes))
    for write in writes:
        reason = unsafe_now(write.path)
        if reason:
            raise InfeasibleError(reason)
    return writes


def _kept_beside(writes: Sequence[Write]) -> list[Write]:
    """The stores that leave the read-ahead as it is, where another one would raise it."""
    own = {write.path for write in writes}
    raising = [write.path for write in writes if write.path.name in RAISING]
    return [Write(path, sysfs.value(path)) for path in read_aheads(raising) if path not in own]


def restoring(originals: Mapping[Path, str]) -> list[Write]:
    """The stores that bring files back to their originals (`sysfs.original`), in a safe order.

    Nothing is left out or refused: before each, skip it if `sysfs.original` already reads so
    (a switch of the scheduler before it may have changed it), and ask `unsafe_now`.
    """
    ordered = sorted(originals.items(), key=lambda pair: rank(pair[0].name))
    return _speeds_in_order([Write(path, text) for path, text in ordered])


def unsafe_now(path: Path) -> str | None:
    """Why a file must not be written at this moment, or None."""
    if path.name in BOUNDS and is_reshaping(path.parent):
        return f"During a reshape {path} is mdadm's, which stops at it to make backups."
    if path.name == CACHE and is_reshaping(path.parent):
        return (
            f"{path} must not be written during a reshape, which stands still for ever, and the "
            "array with it, if the cache gets too small for it (seen on 6.1.176); wait until it "
            "has ended."
        )
    if path.name != "group_thread_cnt":
        return None
    action = sysfs.read_or(path.parent / "sync_action", "idle")
    if action in ("idle", "frozen"):
        return None
    return (
        f"{path} must not be written while a sync runs ({action}), because the kernel may hang; "
        "wait until it has ended."
    )


def rank(name: str) -> tuple[int, str]:
    """Sorts the files of knobs, by name, into the order in which it is safe to write them (but for
    the two speeds, whose order depends on what is there)."""
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _needed(writes: list[Write]) -> list[Write]:
    """Without the stores of a value that is there already and will not be reset before, and those
    of a scheduler that will not be in force."""
    needed: list[Write] = []
    for write in writes:
        if not iosched.can_be_set(write, needed):
            continue
        reset = any(resets(earlier.path, write.path) for earlier in needed)
        if reset or sysfs.value(write.path) != write.text:
            needed.append(write)
    return needed


def _speeds_in_order(writes: list[Write]) -> list[Write]:
    """The same stores, the speeds of each array last and so that min ≤ max at every moment.

    If the new max is no lower than the present min, max first; else min first, whose new value
    is then below both.
    """
    speeds = [write for write in writes if write.path.name in SPEEDS]
    if not speeds:
        return writes

    def key(write: Write) -> tuple[str, bool]:
        folder = write.path.parent
        new_max = next((w.text for w in speeds if w.path == folder / "sync_speed_max"), None)
        try:
            present_min = int(sysfs.value(folder / "sync_speed_min"))
        except OSError:
            # The array is gone, and who writes there is told so.
            present_min = 0
        max_first = new_max is not None and _speed(folder, new_max) >= present_min
        return (str(folder), (write.path.name == "sync_speed_max") != max_first)

    return [write for write in writes if write not in speeds] + sorted(speeds, key=key)


def _speed(md: Path, text: str) -> int:
    """A max speed in KiB/s; "system" is the sysctl's."""
    if text != sysfs.SYSTEM:
        return int(text)
    return int(sysfs.read_or(md.parents[3] / "proc/sys/dev/raid/speed_limit_max", "200000"))
