"""What waits for the end of a guarded sync, and so is slowed down with it. Changes nothing."""

from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.neighbours import rebuild_behind
from autotune.system.replacement import replacement_waits
from autotune.system.sync import CHECKS


def behind(array: Array) -> str:
    """The rest of a sentence: "the recovery of /dev/md1 waits for it"; "" if nothing waits that an
    array's redundancy depends on."""
    found = rebuild_behind(array)
    if found is None and array.sync_action in CHECKS:
        found = replacement_waits(array) or _own(array)
    return found or ""


def _own(array: Array) -> str:
    """A check is not interrupted for a disk that is added to an array that lacks one."""
    states = [sysfs.read_or(folder / "state", "") for folder in array.md.glob("dev-*")]
    spare = any("spare" in text.split(",") for text in states)
    if not spare or sysfs.read_or(array.md / "degraded", "0") == "0":
        return ""
    return f"the recovery of {array.device} waits for it"
