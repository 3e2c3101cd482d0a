"""Whether what is applied to an array is known as long as the array runs."""

from pathlib import Path

from autotune.system.array import Array
from autotune.system.stack import Stack

STAYS_MOUNTED = (Path("/"), Path("/var"), Path("/var/lib"))
"""Nobody unmounts these on a machine that runs."""


def may_go_first(array: Array, stack: Stack, state_dir: Path) -> list[str]:
    """A sentence if the state folder is on the array itself, on a filesystem that somebody may
    unmount while the array goes on."""
    mount = stack.mount_for(state_dir)
    if mount is None or mount.mountpoint in STAYS_MOUNTED:
        return []
    return [
        f"The state folder {state_dir} is on {array.device} itself. While {mount.mountpoint} is "
        "not mounted, what is applied to the array can be neither told nor undone, so choose a "
        "folder elsewhere with --state-dir."
    ]
