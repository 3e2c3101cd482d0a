"""What has to hold before a run, and what to warn of. Changes nothing.

Each check returns None or one whole sentence that says what is wrong and what to do.
Preconditions: MD_FACTS §4. Syncs, rival tuners and filesystems have files of
their own.
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autotune.errors import RefusalError
from autotune.preflight import conflicts, filesystems, syncs
from autotune.quantities import show_bytes
from autotune.suggested import set_by_hand
from autotune.system import neighbours, sysfs
from autotune.system.array import REDUNDANT, Array, lacks_journal
from autotune.system.bad_blocks import bad_sectors
from autotune.system.blockdev import SECTOR
from autotune.system.stack import Stack


@dataclass(frozen=True)
class PreflightFinding:
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
    measures: bool = True,
) -> list[PreflightFinding]:
    """Every finding on the array, refusals first. `told`: somebody has said where to write.
    `writes`: whether data is to be written. `live`: its real sync ("recover", "resync") is what the
    work is about, so that is no obstacle, and neither is the member that it lacks. `pending`: what
    only waits to sync, on an array beside, is one. `measures`: whether fio is needed."""
    refusals = [
        not_root(array),
        unknown_driver(array),
        not_redundant(array),
        external_metadata(array),
        clustered(array),
        no_uuid(array),
        not_read_write(array),
        bad_state(array),
        syncs.resync_pending(array),
        None if live else syncs.degraded(array),
        without_journal(array),
        syncs.reshaping(array),
        syncs.held(array) if live else syncs.syncing(array),
        syncs.neighbour_syncing(array, pending),
        syncs.speeds_crossed(array),
        program_missing() if measures else None,
    ]
    warnings = [
        syncs.tuned_live(array, live),
        auto_read_only(array),
        *filesystems.failed(stack),
        filesystems.where_to_write(array, stack, told) if writes else None,
        iostats_off(array),
        mismatched(array),
        bad_blocks(array),
        *conflicts.find(array),
    ]
    return [PreflightFinding("refuse", text) for text in refusals if text] + [
        PreflightFinding("warn", text) for text in warnings if text
    ]


def refusals(findings: Iterable[PreflightFinding]) -> list[str]:
    return [finding.message for finding in findings if finding.severity == "refuse"]


def unknown_driver(array: Array) -> str | None:
    """Unraid's own driver calls its devices md too, but has none of md's attributes."""
    marks = ("etc/unraid-version", "proc/mdcmd")
    if any((array.root / mark).exists() for mark in marks):
        return "This is Unraid, whose arrays are not Linux md; autotune cannot tune them."
    return None


def not_redundant(array: Array) -> str | None:
    if array.level in REDUNDANT and array.raid_disks > 1:
        return None
    if array.level in REDUNDANT:
        return f"{array.device} has one member only, so it has no redundancy and nothing to sync."
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


def clustered(array: Array) -> str | None:
    # metadata_show (md-bitmap.c)
    if sysfs.read_or(array.md / "bitmap/metadata", "") != "clustered":
        return None
    return (
        f"{array.device} is shared with other machines (clustered), whose users are not seen from "
        "here; autotune tunes only arrays that one machine uses."
    )


def no_uuid(array: Array) -> str | None:
    if array.uuid:
        return None
    return (
        f"{array.device} has no UUID that can be read, so it cannot be told from others; install "
        "mdadm if it is missing. An array without a superblock (`mdadm --build`) cannot be tuned, "
        "and to make one would overwrite data."
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


def auto_read_only(array: Array) -> str | None:
    """md takes a first write, and a check too, as the sign that the array is in use."""
    if array.array_state != "read-auto":
        return None
    return (
        f"{array.device} is auto-read-only, as after an assembly; a check that autotune starts, or "
        "what it writes, makes the array active like any first write."
    )


def without_journal(array: Array) -> str | None:
    if not lacks_journal(array.md):
        return None
    return (
        f"The write journal of {array.device} has failed, so md refuses every write, and a check "
        "reads nothing; make the array read-only (`mdadm --readonly`), and give it another one "
        f"with `mdadm {array.device} --add-journal DISK`."
    )


def mismatched(array: Array) -> str | None:
    """md keeps what the last check has found until the next one begins, and a run begins some."""
    count = sysfs.read_or(array.md / "mismatch_cnt", "0")
    if count == "0":
        return None
    return (
        f"A check of {array.device} has found mismatches (mismatch_cnt {count}, in sectors), and "
        "the checks of autotune reset that number. Write it down, and first find out why: by a "
        "failing disk (`smartctl`), faulty memory or a power cut. On RAID 1 and 10, a swap makes "
        "harmless ones."
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


def program_missing() -> str | None:
    """What is not there of the programs that a measurement needs, in a sentence."""
    if not shutil.which("fio"):
        return (
            "fio is not installed; install the package fio (`apt install fio`, `dnf install fio`)."
        )
    if not shutil.which("setpriv"):
        return "setpriv, which starts fio, is not installed; install the package util-linux."
    return None


def not_root(array: Array) -> str | None:
    return _not_root() if array.root == Path("/") else None


def require_root() -> None:
    """Raise RefusalError unless this is root: said before anything else is looked at."""
    why = _not_root()
    if why is not None:
        raise RefusalError(why)


def _not_root() -> str | None:
    if os.geteuid() != 0:
        return "Only root can change the settings of an array; run autotune with sudo."
    # Missing where the kernel has no user namespaces.
    if sysfs.read_or(UID_MAP, EVERYBODY).split() == EVERYBODY.split():
        return None
    return (
        "Only the machine's root can change the settings of an array, and this is root of a user "
        "namespace, such as a container's; run autotune on the machine itself."
    )


UID_MAP = Path("/proc/self/uid_map")
"""Who users of this namespace are outside of it: user_namespaces(7). md asks for a capability that
only root of the first one has (md_attr_store)."""
EVERYBODY = "0 0 4294967295"


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
        f"there; turn them on with `{set_by_hand('/sys/block/NAME/queue/iostats', 1)}`."
    )
