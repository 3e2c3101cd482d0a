"""The arrays beside one: those that share a disk with it, now.

md runs one sync at a time on a disk, so a check of one array holds up the recovery of another. A
member that has failed does not count (md.c, match_mddev_units), though it is listed until it is
removed.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from autotune.errors import RefusalError
from autotune.system import sysfs
from autotune.system.array import Array, read_array
from autotune.system.blockdev import leaves
from autotune.system.mdstat import section
from autotune.system.stack import holders
from autotune.system.sync import NAMES, REBUILDS, is_delayed


def sharing(array: Array) -> list[Array]:
    """The arrays that share a disk with it. Not those that lie on it, or that it lies on: what is
    asked of them is asked of it, or the reverse."""
    root, found = array.root, []
    related = {array.name, *_above(array.name, root)}
    for folder in sorted((root / "sys/block").glob("*/md")):
        name = folder.parent.name
        if name in related or not _share(array, name) or array.name in _above(name, root):
            continue
        # One may be stopped, or a disk's scheduler changed, while it is looked at.
        with contextlib.suppress(RefusalError, OSError):
            found.append(read_array(name, root))
    return found


def _above(name: str, root: Path) -> set[str]:
    return {holder.name for holder in holders(name, root)}


PENDING = "waits for its first write to resync"


def neighbour_syncing(array: Array, pending: bool = True) -> str | None:
    """What sync an array beside runs, or waits to run: "/dev/md1 shares disks with /dev/md0 and
    runs a recovery"; None if there is none. It is looked for anew each time, since arrays and
    members come and go.

    Not `pending`: a sync that waits for somebody to write to that array does not count. That may
    take months."""
    mdstat = sysfs.read_or(array.root / "proc/mdstat", "") if pending else ""
    for name, action in _busy(array, mdstat):
        if _share(array, name):
            return f"/dev/{name} shares disks with {array.device} and {action}"
    return None


def rebuild_behind(array: Array) -> str | None:
    """Which array beside one waits for the end of its sync to get its redundancy back: "the
    recovery of /dev/md1 waits for it"; None if there is none."""
    for folder in sorted((array.root / "sys/block").glob("*/md")):
        name, action = folder.parent.name, sysfs.read_or(folder / "sync_action", "idle")
        if name == array.name or action not in REBUILDS:
            continue
        if is_delayed(folder) and _share(array, name):
            return f"the {NAMES[action]} of /dev/{name} waits for it"
    return None


def is_pending(array: Array, name: str, mdstat: str | None = None) -> bool:
    """Whether the first write to an array starts a resync, for which md waits."""
    text = sysfs.read_or(array.root / "proc/mdstat", "") if mdstat is None else mdstat
    return "=PENDING" in section(text, name)


def _busy(array: Array, mdstat: str) -> Iterator[tuple[str, str]]:
    for folder in sorted((array.root / "sys/block").glob("*/md")):
        name = folder.parent.name
        if name == array.name:
            continue
        action = sysfs.read_or(folder / "sync_action", "idle")
        if action not in ("idle", "frozen"):
            yield name, f"runs a {NAMES.get(action, action)}"
        elif (
            is_pending(array, name, mdstat)
            and sysfs.read_or(folder / "array_state", "") == "read-auto"
        ):
            yield name, PENDING


def _share(array: Array, name: str) -> bool:
    return not _leaves(array, name).isdisjoint(_leaves(array, array.name))


def _leaves(array: Array, name: str) -> frozenset[str]:
    members = (array.root / "sys/block" / name / "md").glob("dev-*")
    states = {m.name.removeprefix("dev-"): sysfs.read_or(m / "state", "") for m in members}
    names = [member for member, state in states.items() if "faulty" not in state]
    return frozenset(leaf for each in names for leaf in leaves(each, array.root))
