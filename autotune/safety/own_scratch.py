"""Removing a scratch folder that a run has left. Light."""

import os
from pathlib import Path

from autotune.safety.outcome import Outcome, because
from autotune.safety.record import Record
from autotune.safety.scratch_folder import (
    HANGING_TIMEOUT_S,
    REMOVE_TIMEOUT_S,
    SCRATCH_PREFIX,
    moved_to,
    remove,
)
from autotune.system.mountinfo import mounted
from autotune.system.stack import is_mountpoint, mount_number


def remove_scratch(folder: Path, record: Record, outcome: Outcome) -> None:
    """Remove it wherever it is by now, or say why that cannot be."""
    # The journal is root's own file, but a folder that is not one of ours is never removed.
    if not folder.name.startswith(SCRATCH_PREFIX):
        return
    there = False
    try:
        there = folder.exists()
        # One of that name may be a copy, as on a clone of the volume. Where it is numbered anew, as
        # after a reboot, that cannot be seen.
        seen = there and (outcome.rebooted or _is_numbered_anew(folder, record))
        if not seen and (why := _out_of_sight(folder, record, outcome.rebooted)):
            # Cleared now, the journal would leave a large file that nobody knows of.
            outcome.failed.append(
                f"{folder} may still be there, but {why}, or delete the journal if that "
                "filesystem is gone for good"
            )
            return
        if folder.is_symlink() or not (there or _is_its_parent(folder, record)):
            if moved := moved_to(folder, record.mounts.get(str(folder), "")):
                remove_scratch(moved, record, outcome)
            return
        if there and folder.stat().st_uid != os.geteuid():
            outcome.failed.append(f"{folder} belongs to somebody else, so it is left")
            return
        # Whoever waits for the run's end does not wait for what hangs, which goes by itself.
        ending = Path(f"/proc/{record.pid}").exists() and str(folder) in record.hanging
        remove(folder, HANGING_TIMEOUT_S if ending else REMOVE_TIMEOUT_S)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and there and not folder.exists():
            # Who was left to remove it has come first; or it is out of sight since.
            remove_scratch(folder, record, outcome)
            return
        outcome.failed.append(because(folder, error))
        return
    if there:
        outcome.removed.append(str(folder))


def _is_its_parent(folder: Path, record: Record) -> bool:
    """Whether the folder that a scratch folder was in still has its name: a new one may have."""
    if not folder.parent.is_dir():
        return False
    number = record.parents.get(str(folder))
    return number is None or folder.parent.stat().st_ino == number


def _is_numbered_anew(folder: Path, record: Record) -> bool:
    """Whether nothing has the number any more that the filesystem of a scratch folder had, as when
    its array was assembled under another name since. That of a btrfs may be one of another kind's
    by now."""
    if (number := record.devices.get(str(folder))) is None:
        return False
    text, mounts = f"{os.major(number)}:{os.minor(number)}", mounted()
    place = record.mounts.get(str(folder), "")
    kinds = {each.kind for each in mounts if each.place == place}
    known = {each.device for each in mounts if each.kind in kinds}
    return text not in known and not Path("/sys/dev/block", text).exists()


def _out_of_sight(folder: Path, record: Record, rebooted: bool) -> str:
    """Why the filesystem of a scratch folder is not the one that its name leads to, and what to
    do; "" if it is."""
    mount = record.mounts.get(str(folder), "")
    if not mount:
        return ""
    if not is_mountpoint(Path(mount)):
        return f"nothing is mounted on {mount}: mount it"
    number = record.devices.get(str(folder))
    # Another boot may number it otherwise.
    if not rebooted and number is not None and Path(mount).stat().st_dev != number:
        return f"another filesystem is mounted over {mount}: unmount that"
    between = next(each for each in folder.parents if each.exists())
    if mount_number(between) != mount_number(Path(mount)):
        return f"another filesystem is mounted over {between}: unmount that"
    return ""
