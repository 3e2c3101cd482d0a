"""What a check of an array waits for, and what it cannot do without. Changes nothing."""

from pathlib import Path

from autotune.errors import RefusalError
from autotune.preflight import checks
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.blockdev import SECTOR
from autotune.system.neighbours import neighbour_syncing
from autotune.system.programs import UnseenError, mdadm
from autotune.system.stack import read_stack
from autotune.system.sync import NAMES
from autotune.system.temperature import temperatures

COOLER_C = 3
"""A disk that was too warm has to be so much below the limit, or it would be so again at once."""


def passing(array: Array) -> str:
    """What goes before a check and is over by itself, as the rest of a sentence; "" if nothing."""
    action = array.sync_action
    if action in NAMES:
        other = "another check of it" if action == "check" else f"a {NAMES[action]} of it"
        return f"{other} is under way"
    return neighbour_syncing(array, pending=False) or ""


def came_between(array: Array) -> bool:
    """Whether a recovery or resync has begun since its newest check, be it that it is over."""
    last = sysfs.read_or(array.md / "last_sync_action", "")
    return last.startswith(("recover", "resync"))


def rewritten_unseen(array: Array) -> bool:
    """Whether all was reshaped since its newest check, be it back to what it was, or a member was
    rebuilt of an array that does not tell."""
    last = sysfs.read_or(array.md / "last_sync_action", "")
    return last.startswith("reshape") or (untold(array) and last.startswith("recover"))


def untold(array: Array) -> bool:
    """Whether the superblocks do not tell a member that was added anew from before."""
    return array.metadata.startswith("0.9")


def too_warm(array: Array, limit_c: int, begun: bool = False) -> str:
    """Which member's disk is too warm, as the rest of a sentence; "" if none is. `begun`: a
    part has run, so that all disks have to be COOLER_C below the limit before the next one."""
    seen = temperatures(array.leaves, array.root)
    most_c = limit_c - COOLER_C if begun else limit_c
    hot = max(seen, key=lambda disk: seen[disk], default="")
    if not hot or seen[hot] <= most_c:
        return ""
    return f"the disk {hot} has {seen[hot]:.0f} °C, and {most_c} °C are wanted at the most"


def lasting(array: Array) -> str:
    """Why the array cannot be checked until somebody does something: a sentence; "" if it can."""
    found = checks.check(array, read_stack(array), pending=False)
    return next(iter(checks.refusals(found)), "")


def size_sectors(array: Array) -> int:
    """How far a check goes: over each member, on RAID 10 over the array's own addresses."""
    if array.level == "raid10":
        return array.size_bytes // SECTOR
    return int(sysfs.read(array.md / "component_size")) * 1024 // SECTOR


def shape(array: Array) -> str:
    """What has to stay for the parts of a check to be of the same array."""
    return (
        f"{array.level}, layout {sysfs.read_or(array.md / 'layout', '0')}, "
        f"{array.raid_disks} members, {array.chunk_bytes >> 10} KiB chunks, "
        f"{size_sectors(array)} sectors"
    )


def members(array: Array) -> tuple[str, ...]:
    """What tells the members from those that may replace them: what mdadm wrote on each as it was
    added, and what its disk says of itself, since a copy of a disk has the former, too; the name if
    there is neither. Raise RefusalError if mdadm cannot be asked."""
    here = [m for m in array.members if "faulty" not in m.state and "spare" not in m.state]
    return tuple(sorted(f"{_added_as(m.name, array)} {m.hardware}".strip() or m.name for m in here))


def _added_as(name: str, array: Array) -> str:
    """ "" if mdadm writes no such thing on members of this kind."""
    if array.root != Path("/") or array.metadata == "none":
        return ""
    try:
        return mdadm("--examine", name).get("MD_DEV_UUID", "")
    except UnseenError as error:
        # Other names would throw away what was checked so far.
        raise RefusalError(
            f"mdadm cannot be asked about the member {name} of {array.device}: {error}; the check "
            "keeps its place, so try again once it answers."
        ) from None
