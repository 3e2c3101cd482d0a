"""The commands that make the array of a shape, its filesystem, and the line of /etc/fstab. Pure."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.design.shape import Shape

MOUNT = "/srv/array"
OPTIONS = "defaults,noatime,nofail"
"""So that a machine without the array still boots."""


@dataclass(frozen=True)
class Commands:
    """Lines for a shell, but for the two of /etc/fstab; one filesystem or the other."""

    mdadm: str
    ext4: str
    ext4_fstab: str
    xfs: str
    xfs_fstab: str


def commands(shape: Shape, device: str, disks: Sequence[str], filesystem: str) -> Commands:
    """`disks` as the user calls them; `filesystem` is the UUID that the filesystem will get."""
    count = len(disks)
    return Commands(
        shlex.join(("mdadm", "--create", device, *shape.mdadm_words(count), *disks)),
        shlex.join(("mkfs.ext4", *shape.ext4_words(count), "-U", filesystem, device)),
        f"UUID={filesystem} {MOUNT} ext4 {OPTIONS} 0 2",
        shlex.join(("mkfs.xfs", *shape.xfs_words(count), "-m", f"uuid={filesystem}", device)),
        f"UUID={filesystem} {MOUNT} xfs {OPTIONS} 0 0",
    )
