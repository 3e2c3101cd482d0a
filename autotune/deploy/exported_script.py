"""What an exported script (`export/script.sh`) has set on a machine."""

from pathlib import Path

from autotune.errors import RefusalError
from autotune.system import sysfs
from autotune.system.array import Array

RECORDS = Path("run/autotune-profile")
"""A file for each array, with what the script found, until it undoes what it has set."""
NAME = "name - - "
"""Begins the lines with the array's names; earlier versions wrote none."""


def refuse_over(array: Array) -> None:
    """Raise RefusalError if a script has set something on the array or its disks: that would be
    taken for the original."""
    if text := in_force(array):
        raise RefusalError(text)


def in_force(array: Array) -> str | None:
    """That a script has set something on the array or its disks, and how that is undone."""
    # Which is how the kernel prints it: of old metadata, mdadm's has its words in another order.
    printed = sysfs.read_or(array.md / "uuid", "").replace("-", "")
    for record in (array.root / RECORDS).glob("*"):
        lines = sysfs.read_or(record, "").splitlines()
        name = next((line.removeprefix(NAME) for line in lines if line.startswith(NAME)), "")
        own = any(uuid and record.name.endswith(uuid) for uuid in (array.uuid, printed))
        for line in lines:
            # Its number tells a device from one that was started anew since.
            device, number = (*line.split(" "), "")[:2]
            folder = array.block if own and device == "array" else Path(device)
            concerned = own or folder.name in array.leaves
            if concerned and sysfs.identity(folder).split(" ")[0] == number:
                return (
                    f"An exported script has set values on {array.device} or its disks; run "
                    f"it with `undo {name or 'DEVICE'}`, also if that array is gone."
                )
    return None
