"""What the kernel calls its syncs, and what people call them."""

import math
from pathlib import Path

from autotune.errors import SyncEndedError, UsageError
from autotune.quantities import parse_seconds
from autotune.suggested import set_by_hand
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.blockdev import number

NAMES = {
    "recover": "recovery",
    "resync": "resync",
    "reshape": "reshape",
    "check": "check",
    "repair": "repair",
}
"""What `sync_action` reads while each runs: in sysfs, and in words."""
REBUILDS = ("recover", "resync")
"""Those that bring back redundancy."""
CHECKS = ("check", "repair")
"""Those that look for mismatches; people or timers start them."""
SPEEDS = ("sync_speed_min", "sync_speed_max")
"""Between which md keeps them, in KiB/s of each member."""
FLOOR_KIB = 1000
"""The kernel's own lowest speed, below which it never holds a sync back."""
LONGEST_S = 366 * 86_400.0
"""No sync is given longer."""
SHUT_KIB = FLOOR_KIB + 1
"""The `sync_speed_max` by which a guard holds a sync: a number that nobody would set by hand."""


def parse_within(text: str) -> float:
    """`24h` in seconds. Raise UsageError if it is no time, or no sync takes as long."""
    seconds = parse_seconds(text)
    if seconds > LONGEST_S:
        raise UsageError(f'"{text}" is more than a year; name a deadline that a sync can meet.')
    return seconds


def counted_for_each(array: Array, action: str) -> float:
    """How much md counts, and limits, for each KiB of each member: on RAID 10 all but a recovery
    goes by the array's own addresses. `action` as `sync_action` names it."""
    if array.level != "raid10" or action == "recover":
        return 1.0
    return array.size_bytes / 1024 / max(number(array.md / "component_size"), 1)


def limit_kib(array: Array) -> float:
    """What md lets a sync do, as it counts; infinite for levels without one."""
    text = sysfs.read_or(array.md / "sync_speed_max", "").partition(" ")[0]
    return float(text) if text.isdigit() else math.inf


def is_checking(md: Path) -> bool:
    """Whether a check of an array runs or comes to its end, by its folder in sysfs.

    One that is frozen, as where the array is made read-only, reads so at once; where it got to
    (`sync_min`) is stored at the end of md's thread (md_do_sync).
    """
    action = sysfs.read_or(md / "sync_action", "")
    ends = action == "frozen" and sysfs.read_or(md / "sync_completed", "none") != "none"
    return ends or action == "check"


def is_delayed(md: Path) -> bool:
    """Whether a sync waits for that of an array beside to end, by its folder in sysfs. It does so
    before it begins, and never again (md_do_sync)."""
    return sysfs.read_or(md / "sync_completed", "") == "delayed"


def how_to_thaw(md: Path) -> str:
    """What to do about a sync that is frozen, by the array's folder in sysfs."""
    return (
        "mdadm does that while it works on an array, so wait until it has ended; only if no mdadm "
        f"is at work (`pgrep mdadm`), thaw it with `{set_by_hand(md / 'sync_action', 'idle')}`"
    )


def real_sync(array: Array) -> str:
    """The array's action if it is a real recovery or resync, as sysfs names it; else ""."""
    return array.sync_action if array.sync_action in REBUILDS else ""


def ended(array: Array) -> SyncEndedError:
    """What to raise when the sync that was being tuned is over."""
    what = NAMES.get(array.sync_action, "sync")
    return SyncEndedError(f"the {what} of {array.device} has ended, so nothing is left to tune")
