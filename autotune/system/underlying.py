"""What a filesystem lies on, and whether a file in it does harm there, or lies elsewhere.

Free space in a filesystem is not always its own: under it may be a thin pool that others fill too,
or a snapshot that keeps a copy of each block that changes.
"""

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import UsageError
from autotune.system import layers
from autotune.system.blockdev import SECTOR, kernel_name, number
from autotune.system.mountinfo import mounted
from autotune.system.programs import UnseenError
from autotune.system.stack import Mount

_KNOWN_FILESYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs")
"""They give back at once what is removed. bcachefs, as an example, may keep it."""

_KEEPING = {
    "nilfs2": "nilfs2 takes new blocks for what is written over, and gives the old ones back only "
    "later (protection_period), so the load would fill it"
}
"""Why nothing may be written there, however small the file."""

_IN_PLACE = ("ext2", "ext3", "ext4", "jfs", "tmpfs")
"""Those that write a block where it was."""
_IN_MEMORY = ("tmpfs", "ramfs")

_OWN_BLOCKS = ("linear", "striped", "crypt", "integrity", "raid", "mirror", "multipath", "delay")
"""The targets under which blocks written are the filesystem's own."""

_SNAPSHOT = "{} is itself a snapshot, which writes would fill up; use another filesystem"
_HARM = {
    "snapshot-origin": "the volume {} has a snapshot, which writes would fill up and destroy; "
    "remove the snapshot first",
    "snapshot": _SNAPSHOT,
    "snapshot-merge": _SNAPSHOT,
    "vdo": "it lies on the VDO volume {}, whose real space may be less than it says",
}
"""The targets that may take new space for a block that is written over, wherever they lie."""

_CACHES = ("cache", "writecache")
_NETWORK = ("drbd", "rbd", "nbd")
"""How the devices are called that send what is written to another machine."""


@dataclass(frozen=True)
class Underlying:
    """What a filesystem lies on.

    `bar` says why no scratch file may be there, `unasked` why only if its folder is named; both
    are "" if nothing speaks against it. `pools` are thin pools below, `stores` the files below by
    way of loop devices whose own filesystem has to have the room, too.
    """

    fstype: str = ""
    bar: str = ""
    unasked: str = ""
    pools: tuple[str, ...] = ()
    stores: tuple[Path, ...] = ()
    layers: tuple[str, ...] = ()
    root: Path = Path("/")

    @property
    def against(self) -> str:
        """Why no scratch file is made there by itself."""
        return self.bar or self.unasked


def layers_of(mount: Mount, array: str, root: Path) -> tuple[str, ...]:
    """The devices below a filesystem, those below the array among them."""
    above = layers.below(mount.device, root, stop=(array,))
    under = layers.below(array, root)
    return tuple(dict.fromkeys((*above, *under)))


def off_array(mount: Mount, array: str, root: Path) -> str | None:
    """The first device below a filesystem that is not on the array."""
    return layers.elsewhere(layers.below(mount.device, root, stop=(array,)), array, root)


def read_underlying(mount: Mount, array: str, root: Path = Path("/")) -> Underlying:
    """Look at everything below a filesystem. Never raises: what cannot be seen speaks against a
    scratch file."""
    names = layers_of(mount, array, root)
    above = layers.below(mount.device, root, stop=(array,))
    thin, pools, bar = "", [], ""
    for name in names:
        try:
            kinds = layers.targets(name, root)
        except UnseenError as error:
            bar = f"what it lies on cannot be seen: {error}"
            break
        bar = _bar(name, kinds, name in above, root)
        if bar:
            break
        thin = thin or (layers.label(name, root) if "thin" in kinds else "")
        pools += [name] * ("thin-pool" in kinds)
    bar = bar or _KEEPING.get(mount.fstype, "") or _not_on_the_array(mount, array, root)
    unasked = ""
    if thin:
        unasked = (
            f"it lies on the thin volume {thin}, and the pool's space is others' too; name it "
            f"(--scratch {mount.mountpoint}) to let a tenth of the pool's free space be used, "
            "and run `fstrim` there afterwards"
        )
    elif other := off_array(mount, array, root):
        unasked = (
            f"it lies on {layers.label(other, root)} too, and nobody knows on which of them a file "
            f"is; name it (--scratch {mount.mountpoint}) to measure there all the same"
        )
    elif mount.fstype not in _KNOWN_FILESYSTEMS:
        unasked = (
            f"{mount.fstype} may keep what is removed; name a folder there (--scratch) if that "
            "does no harm"
        )
    files = (layers.backing_file(name, root) for name in names)
    stores = tuple(file for file in files if file is not None and new_bytes(file, root) != 0)
    return Underlying(mount.fstype, bar, unasked, tuple(pools), stores, names, root)


def _bar(name: str, kinds: tuple[str, ...], above: bool, root: Path) -> str:
    """Why no scratch file may be on this device at all; "" if nothing speaks against it."""
    label = layers.label(name, root)
    if harm := harm_to(name, kinds, root):
        return harm
    if not above:
        # What is below the array is part of it, whatever else it does.
        return f"a member of the array lies on the thin volume {label}" if "thin" in kinds else ""
    if name.startswith(_NETWORK):
        return f"it lies on {label}, so each write there goes over the network"
    if name.startswith("bcache") or any(kind in _CACHES for kind in kinds):
        return f"it lies on the cache {label}, so writes would measure that and not the array"
    strange = [kind for kind in kinds if kind not in (*_OWN_BLOCKS, "thin", "thin-pool")]
    if strange:
        return f'it lies on {label}, and what a write to the target "{strange[0]}" does is unknown'
    return ""


def harm_to(name: str, kinds: Collection[str], root: Path) -> str:
    """What writes do to a device that is made of such targets, or to what shares its space; "" if
    nothing."""
    harm = next((text for kind, text in _HARM.items() if kind in kinds), "")
    return harm.format(layers.label(name, root))


def _not_on_the_array(mount: Mount, array: str, root: Path) -> str:
    """Why a file may lie on none of the devices that are known to be below; "" if it may not."""
    if mount.fstype == "f2fs" and _is_larger_than_its_device(mount, root):
        device = layers.label(mount.device, root)
        return f"it is larger than {device}, so its files may lie on other devices, too"
    for option in mount.options:
        key, _, device = option.partition("=")
        if key != "rtdev":
            continue
        with contextlib.suppress(UsageError):
            if layers.elsewhere((kernel_name(device, root),), array, root) is None:
                continue
        return f"its files may lie on the realtime device {device}, which is not on the array"
    return ""


def _is_larger_than_its_device(mount: Mount, root: Path) -> bool:
    """As one that was made over several devices, of which the kernel names only the first."""
    device_bytes = number(root / "sys/class/block" / mount.device / "size") * SECTOR
    try:
        found = os.statvfs(mount.mountpoint)
    except OSError:
        return False
    return 0 < device_bytes < found.f_blocks * found.f_frsize


def new_bytes(file: Path, root: Path) -> int | None:
    """How much new space it may take to write all of a file, and then again: what is missing in it
    if it is sparse; and all of it where its filesystem does not write in place, as btrfs never
    does, and XFS where a copy shares the block (reflink). None if that is not known."""
    try:
        status = file.stat()
    except OSError:
        return None
    kinds = _kinds(status, root)
    missing = max(0, status.st_size - status.st_blocks * 512)
    in_place = kinds and kinds.issubset(_IN_PLACE)
    return missing if in_place else status.st_size + missing


def is_in_memory(file: Path, root: Path) -> bool:
    """Whether a filesystem keeps its files in memory, be it swapped out."""
    try:
        return not _kinds(file.stat(), root).isdisjoint(_IN_MEMORY)
    except OSError:
        return False


def _kinds(status: os.stat_result, root: Path) -> set[str]:
    """What kind of filesystem a file is on; nothing where its number is no mount's."""
    number = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    return {each.kind for each in mounted(root / "proc/self") if each.device == number}
