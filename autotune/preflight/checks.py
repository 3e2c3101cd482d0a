"""What has to hold before a run, and what to warn of. Changes nothing.

Each check returns None or one whole sentence that says what is wrong and what to do.
Preconditions: MD_FACTS §4. Rival tuners and filesystems have files of their own.
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autotune.errors import RefusalError
from autotune.measure import live_sync
from autotune.preflight import conflicts, filesystems
from autotune.quantities import show_bytes
from autotune.system import neighbours, sync, sysfs
from autotune.system.array import REDUNDANT, Array, lacks_journal
from autotune.system.bad_blocks import bad_sectors
from autotune.system.blockdev import SECTOR
from autotune.system.stack import Stack


@dataclass(frozen=True)
class Finding:
    """One thing found: "refuse" stops a run, "warn" does not."""

    severity: Literal["refuse", "warn"]
    message: str


def check(
    array: Array,
    stack: Stack,
    live: str = "",
    told: bool = False,
    writes: bool = True,
    pending: bool = True,
) -> list[Finding]:
    """Every finding on the array, refusals first. `told`: somebody has said where to write.
    `writes`: whether data is to be written. `live`: its real sync ("recover", "resync") is what the
    work is about, so that is no obstacle, and neither is the member that it lacks. `pending`: what
    only waits to sync, on an array beside, is one."""
    refusals = [
        not_root(array),
        unknown_driver(array),
        not_redundant(array),
        external_metadata(array),
        no_uuid(array),
        not_read_write(array),
        bad_state(array),
        resync_pending(array),
        None if live else degraded(array),
        without_journal(array),
        reshaping(array),
        held(array) if live else syncing(array),
        neighbour_syncing(array, pending),
        speeds_crossed(array),
        fio_missing(),
    ]
    warnings = [
        tuned_live(array, live),
        auto_read_only(array),
        *filesystems.given_up(stack),
        filesystems.where_to_write(array, stack, told) if writes else None,
        iostats_off(array),
        mismatched(array),
        bad_blocks(array),
        *conflicts.find(array),
    ]
    return [Finding("refuse", text) for text in refusals if text] + [
        Finding("warn", text) for text in warnings if text
    ]


def refusals(findings: Iterable[Finding]) -> list[str]:
    return [finding.message for finding in findings if finding.severity == "refuse"]


def unknown_driver(array: Array) -> str | None:
    """Unraid's own driver calls its devices md too, but has none of md's attributes."""
    marks = ("etc/unraid-version", "proc/mdcmd")
    if any((array.root / mark).exists() for mark in marks):
        return "This is Unraid, whose arrays are not Linux md; autotune cannot tune them."
    return None


def not_redundant(array: Array) -> str | None:
    if array.level in REDUNDANT:
        return None
    return (
        f"{array.device} is {array.level}, which has no redundancy and nothing to sync; "
        f"autotune tunes {', '.join(REDUNDANT)}."
    )


def external_metadata(array: Array) -> str | None:
    if not array.metadata.startswith("external"):
        return None
    return (
        f"{array.device} keeps its metadata in a firmware format (IMSM or DDF), which another "
        "program manages; autotune tunes only arrays with md's own metadata."
    )


def no_uuid(array: Array) -> str | None:
    if array.uuid:
        return None
    return (
        f"{array.device} has no UUID that can be read, so it cannot be told from others; "
        "install mdadm, or give the array a superblock."
    )


def not_read_write(array: Array) -> str | None:
    if not array.read_only:
        return None
    return f"{array.device} is read-only; make it writable with `mdadm --readwrite {array.device}`."


_GOOD_STATES = ("clean", "active", "active-idle", "write-pending", "read-auto")


def bad_state(array: Array) -> str | None:
    if array.read_only or array.array_state in _GOOD_STATES:
        return None
    return (
        f"{array.device} is in the state {array.array_state}; it must be clean or active: "
        f"look at `mdadm --detail {array.device}`."
    )


def resync_pending(array: Array) -> str | None:
    """The first write, or a check, starts it."""
    if not neighbours.is_pending(array, array.name):
        return None
    return (
        f"{array.device} waits for its first write to resync; start that with "
        f"`mdadm --readwrite {array.device}`, and wait until it has ended."
    )


def auto_read_only(array: Array) -> str | None:
    """md takes a first write, and a check too, as the sign that the array is in use."""
    if array.array_state != "read-auto":
        return None
    return (
        f"{array.device} is auto-read-only, as after an assembly; a check that autotune starts, or "
        "what it writes, makes the array active like any first write."
    )


def degraded(array: Array) -> str | None:
    if array.degraded == 0:
        return None
    members = "a member" if array.degraded == 1 else f"{array.degraded} members"
    if sync.under_way(array):
        return f"{array.device} is degraded and {_SYNCING[array.sync_action]}{_or_tune_it(array)}."
    return (
        f"{array.device} is degraded: it lacks {members}; replace what failed with "
        f"`mdadm {array.device} --add DISK` and wait for the recovery."
    )


def without_journal(array: Array) -> str | None:
    if not lacks_journal(array.md):
        return None
    return (
        f"The write journal of {array.device} has failed, so md refuses every write, and a check "
        "reads nothing; make the array read-only (`mdadm --readonly`), and give it another one "
        f"with `mdadm {array.device} --add-journal DISK`."
    )


def reshaping(array: Array) -> str | None:
    if array.reshape_position == "none":
        return None
    return f"{array.device} is being reshaped; wait until /proc/mdstat shows no reshape."


def syncing(array: Array) -> str | None:
    if array.sync_action == "idle" or array.reshape_position != "none":
        return None
    if sync.under_way(array):
        return f"{array.device} is {_SYNCING[array.sync_action]}{_or_tune_it(array)}."
    doing = {
        "reshape": "is being reshaped; wait until it has ended",
        "check": "is being checked; wait, or stop the check with "
        f"`echo idle > /sys/block/{array.name}/md/sync_action`",
        "repair": "is being repaired; wait until it has ended",
        "frozen": "has its sync frozen; thaw it with "
        f"`echo idle > /sys/block/{array.name}/md/sync_action`",
    }
    what = doing.get(array.sync_action, f"is busy ({array.sync_action}); wait until it has ended")
    return f"{array.device} {what}."


_SYNCING = {"recover": "recovering onto a new member", "resync": "resyncing"}


def _or_tune_it(array: Array) -> str:
    return (
        "; wait until it has ended, or tune just that with "
        f"`autotune run {array.device} --workload rebuild`"
    )


def held(array: Array) -> str | None:
    """A sync that reaches sync_max waits there, at no speed at all, until it is raised."""
    bound = sysfs.read_or(array.md / "sync_max", "max")
    if bound == "max":
        return None
    return (
        f"The sync of {array.device} is bounded by sync_max ({bound} sectors) and would stand "
        f"still there; let it go on with `echo max > /sys/block/{array.name}/md/sync_max`."
    )


def tuned_live(array: Array, live: str) -> str | None:
    """What to expect of a run on a real sync."""
    if not live:
        return None
    return (
        f"The {sync.NAMES[live]} of {array.device} is tuned as it runs, never paused or "
        f"restarted; a figure takes {live_sync.WINDOW_S:.0f} s or more, since the kernel goes by "
        "the mean speed of that time."
    )


def neighbour_syncing(array: Array, pending: bool = True) -> str | None:
    """md delays a sync while another array on the same disks has one."""
    found = neighbours.neighbour_syncing(array, pending)
    if found is None:
        return None
    if found.endswith(neighbours.PENDING):
        return f"{found}; let it begin with `mdadm --readwrite {found.split()[0]}`."
    return f"{found}; wait until it has ended."


def speeds_crossed(array: Array) -> str | None:
    """The kernel accepts min > max."""
    low = sysfs.read_or(array.md / "sync_speed_min", "").split(" ")[0]
    high = sysfs.read_or(array.md / "sync_speed_max", "").split(" ")[0]
    if not (low.isdigit() and high.isdigit() and int(low) > int(high)):
        return None
    return (
        f"The sync_speed_min of {array.device} ({low}) is above its sync_speed_max ({high}); "
        f"lower it with `echo system > /sys/block/{array.name}/md/sync_speed_min`."
    )


def mismatched(array: Array) -> str | None:
    """md keeps what the last check has found until the next one begins, and a run begins some."""
    count = sysfs.read_or(array.md / "mismatch_cnt", "0")
    if count == "0":
        return None
    return (
        f"A check of {array.device} has found mismatches (mismatch_cnt {count}, in sectors), and "
        "the checks of autotune reset that number; note it, and look into it first."
    )


def bad_blocks(array: Array) -> str | None:
    """A member with such a list has lost data that only the others have."""
    found = bad_sectors(array)
    if not found:
        return None
    size = show_bytes(sum(found.values()) * SECTOR)
    return (
        f"md has noted {size} of {', '.join(found)} in {array.device} as bad blocks, whose data "
        "only the other members have, and which no check compares; "
        f"`mdadm --examine-badblocks` lists them. Replace that disk."
    )


def fio_missing() -> str | None:
    if shutil.which("fio"):
        return None
    return "fio is not installed; install the package fio (`apt install fio`, `dnf install fio`)."


def not_root(array: Array) -> str | None:
    if array.root != Path("/") or os.geteuid() == 0:
        return None
    return ONLY_ROOT


ONLY_ROOT = "Only root can change the settings of an array; run autotune with sudo."


def require_root() -> None:
    """Raise RefusalError unless this is root: said before anything else is looked at."""
    if os.geteuid() != 0:
        raise RefusalError(ONLY_ROOT)


def iostats_off(array: Array) -> str | None:
    """md tells from the disks' statistics whether the array is busy (kernel is_mddev_idle), and a
    guard from those of all arrays on them."""
    beside = [other.name for other in neighbours.sharing(array)]
    blocks = [array.root / "sys/block" / name for name in (*array.disks, array.name, *beside)]
    # Device-mapper counts whatever the file says, which on 6.1 is 0 where it passes requests on.
    counts = [block for block in blocks if (block / "dm").exists() and not (block / "mq").exists()]
    off = [
        block.name
        for block in blocks
        if sysfs.read_or(block / "queue/iostats", "1") == "0" and block not in counts
    ]
    if not off:
        return None
    return (
        f"I/O statistics are off on {', '.join(off)}, so neither a sync nor a guard sees who is "
        "there; turn them on with `echo 1 > /sys/block/NAME/queue/iostats`."
    )
