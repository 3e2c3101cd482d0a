"""What a check of an array waits for, and what it cannot do without. Changes nothing."""

import subprocess
from pathlib import Path

from autotune.preflight import checks
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.blockdev import SECTOR
from autotune.system.neighbours import neighbour_syncing
from autotune.system.stack import read_stack
from autotune.system.sync import NAMES
from autotune.system.temperature import temperatures

COOLER_C = 3
"""A disk that was too warm has to be so much below the limit, or it would be so again at once."""
_TIMEOUT_S = 20


def passing(array: Array) -> str:
    """What goes before a check and is over by itself, as the rest of a sentence; "" if nothing."""
    action = array.sync_action
    if action in NAMES:
        return f"a {NAMES[action]} of it is under way"
    return neighbour_syncing(array) or ""


def too_warm(array: Array, limit_c: int, was: bool = False) -> str:
    """Which member's disk is too warm, as the rest of a sentence; "" if none is. `was`: one was,
    just now."""
    seen = temperatures(array.leaves, array.root)
    most_c = limit_c - COOLER_C if was else limit_c
    hot = max(seen, key=lambda disk: seen[disk], default="")
    if not hot or seen[hot] <= most_c:
        return ""
    return f"the disk {hot} has {seen[hot]:.0f} °C, and {most_c} °C are wanted at the most"


def lasting(array: Array) -> str:
    """Why the array cannot be checked until somebody does something: a sentence; "" if it can."""
    return next(iter(checks.refusals(checks.check(array, read_stack(array)))), "")


def size_sectors(array: Array) -> int:
    """How far a check goes: over each member, on RAID 10 over the array's own addresses."""
    if array.level == "raid10":
        return array.size_bytes // SECTOR
    return int(sysfs.read(array.md / "component_size")) * 1024 // SECTOR


def shape(array: Array) -> str:
    """What has to stay for the parts of a check to be of the same array."""
    return (
        f"{array.level}, {array.raid_disks} members, {array.chunk_bytes >> 10} KiB chunks, "
        f"{size_sectors(array)} sectors"
    )


def members(array: Array) -> tuple[str, ...]:
    """What tells the members from those that may replace them: what mdadm wrote on each as it was
    added, else what its disk says of itself, else its name."""
    here = [m for m in array.members if "faulty" not in m.state and "spare" not in m.state]
    return tuple(sorted(_added_as(m.name, array.root) or m.hardware or m.name for m in here))


def _added_as(name: str, root: Path) -> str:
    if root != Path("/"):
        return ""
    command = ("mdadm", "--examine", "--export", f"/dev/{name}")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = (line.partition("=") for line in done.stdout.splitlines())
    return next((value for key, _, value in lines if key == "MD_DEV_UUID"), "")
