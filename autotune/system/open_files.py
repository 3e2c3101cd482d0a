"""What programs have open, but for files of filesystems that wait for a server or a program: where
that does not answer, whoever asks about such a file waits without end. Light, as the journal."""

import re
from collections.abc import Iterator
from pathlib import Path

from autotune.system import sysfs
from autotune.system.mountinfo import mounted

PROC = Path("/proc")
_WAITING = ("fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs", "lustre", "beegfs", "gpfs", "orange")
"""How the names of such filesystems begin."""


def open_files() -> Iterator[tuple[int, list[Path]]]:
    """Each process, by its id, and the entries of its files in /proc. A file is left out whose
    mount no process sees any more: a server that no longer answers is unmounted so (umount -l)."""
    processes = sorted(PROC.glob("[0-9]*"))
    # What one process has open may be in the mounts of another, which gave it.
    apart = {_view(process): process for process in processes}.values()
    mounts = {m.number for process in apart for m in mounted(process) if not _waits(m.kind)}
    for process in processes:
        try:
            files = [file for file in (process / "fd").iterdir() if _mount(file) in mounts]
        except OSError:
            continue
        yield int(process.name), files


def may_wait(path: Path) -> bool:
    """Whether a path is on such a filesystem."""
    mounts = {m.place: _waits(m.kind) for m in mounted(PROC / "self")}
    places = (str(each) for each in (path, *path.parents))
    return next((mounts[place] for place in places if place in mounts), False)


def _view(process: Path) -> tuple[str, ...]:
    """What decides which mounts a process sees: in a changed root, none that lies outside."""
    try:
        return tuple(str((process / name).readlink()) for name in ("ns/mnt", "root"))
    except OSError:
        return (str(process),)


def _waits(kind: str) -> bool:
    return kind.startswith(_WAITING)


def _mount(file: Path) -> int:
    """The number of the mount that an open file is on; -1 if it is closed by now."""
    about = sysfs.read_or(file.parents[1] / "fdinfo" / file.name, "")
    found = re.search(r"^mnt_id:\s+(\d+)", about, re.M)
    return int(found[1]) if found else -1
