"""What writes to a raw device would do to what it lies on: its space may be others' too."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from autotune.quantities import show_bytes
from autotune.system import layers
from autotune.system.blockdev import SECTOR, number
from autotune.system.memory import spare_bytes
from autotune.system.programs import UnseenError
from autotune.system.underlying import harm_to, is_in_memory, new_bytes

MOST_OF_FREE = 0.9
"""How much of what is free may be taken by writing all of a device."""


def against_writing(devices: Iterable[str], root: Path = Path("/")) -> str | None:
    """Why not all of these devices may be written, since that takes space of others or does them
    harm; None if nothing speaks against it. Never raises: what cannot be seen does."""
    names = _below(devices, root)
    backing = (layers.backing_file(each, root) for each in names)
    files = [file for file in backing if file is not None]
    return _harm(names, root) or _takes_memory(names, files, root) or _fills(files, root)


def harm(device: str, root: Path = Path("/")) -> str | None:
    """Whom writing to a device harms, however much room there is, as where a snapshot was taken of
    what it lies on; None if nobody. Never raises: what cannot be seen may do so."""
    return _harm(_below([device], root), root)


def _below(devices: Iterable[str], root: Path) -> list[str]:
    return list(dict.fromkeys(each for name in devices for each in layers.below(name, root)))


def _harm(names: Iterable[str], root: Path) -> str | None:
    for each in names:
        try:
            kinds = layers.targets(each, root)
        except UnseenError as error:
            return f"what it lies on cannot be seen: {error}"
        if found := harm_to(each, kinds, root):
            return found
        if "thin" in kinds:
            label = layers.label(each, root)
            return f"it lies on the thin volume {label}, and the pool's space is others' too"
    return None


def _takes_memory(names: Iterable[str], files: Iterable[Path], root: Path) -> str | None:
    """Whether writing all of it would take memory that others need: what a tmpfs calls free may be
    in use by then, and swapped out, or ended for want of memory."""
    disks = [name for name in names if re.fullmatch(r"z?ram\d+", name)]
    stores = [file for file in files if is_in_memory(file, root)]
    new = sum(number(root / "sys/class/block" / name / "size") * SECTOR for name in disks)
    new += sum(new_bytes(file, root) or 0 for file in stores)
    spare = spare_bytes(root) if new else 0
    if new <= spare:
        return None
    what = ", ".join([*disks, *map(str, stores)])
    return (
        f"{what} is kept in memory: writing all may take {show_bytes(new)} of it, and "
        f"{show_bytes(spare)} can be spared"
    )


def _fills(files: Iterable[Path], root: Path) -> str | None:
    """Whether what loop devices keep their blocks in would fill a filesystem."""
    wanted: dict[int, int] = {}
    for file in files:
        new = new_bytes(file, root)
        if new == 0:
            continue
        try:
            filesystem, found = file.stat().st_dev, os.statvfs(file)
        except OSError as error:
            return f"it lies on {file}, which cannot be looked at: {error.strerror}"
        wanted[filesystem] = wanted.get(filesystem, 0) + (new or 0)
        free = found.f_bavail * found.f_frsize
        if wanted[filesystem] > MOST_OF_FREE * free:
            return (
                f"the loop device's file {file} is on a filesystem with {show_bytes(free)} free, "
                "which others use, too, and writing all may take "
                f"{show_bytes(wanted[filesystem])} of that"
            )
    return None
