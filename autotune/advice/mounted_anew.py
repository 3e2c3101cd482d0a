"""What mounts a filesystem anew with other options, everything else being as it was."""

from collections.abc import Collection, Sequence
from shlex import quote

from autotune.advice.array_facts import ArrayFacts, listed
from autotune.system.stack import Mount

UNMOUNTED = "the filesystem is unmounted for a moment, so nothing may use it."
_KERNELS_OWN = {"rw", "relatime", "seclabel", "attr2", "inode64", "noquota"}
"""Shown of a filesystem that nobody gave any option."""


def mounted_anew(
    facts: ArrayFacts, mount: Mount, without: Collection[str], more: Sequence[str] = ()
) -> tuple[tuple[str, ...], str]:
    """The commands, and what to know before them. `without` names options, with or without values,
    that it has now; `more` are those that it gets."""
    if mount.root != "/":
        return (), "Only a folder of it is mounted here."
    kept = sorted(
        option for option in mount.options - _KERNELS_OWN if option.partition("=")[0] not in without
    )
    options = ",".join((*kept, *more))
    words = ["mount", *(["-o", quote(options)] if options else [])]
    where, device = quote(str(mount.mountpoint)), quote(facts.device(mount.device))
    # With the device named, /etc/fstab is not asked for options (mount(8)).
    command = f"umount {where} && {' '.join(words)} {device} {where}"
    others = [str(m.mountpoint) for m in facts.stack.mounts if m.device == mount.device]
    others.remove(str(mount.mountpoint))
    if not others:
        return (command,), ""
    # As long as one is left, the kernel keeps the filesystem and its options.
    return (command,), (
        f"It is mounted on {listed(sorted(others))} too: unmount that before, and mount it again "
        "afterwards."
    )
