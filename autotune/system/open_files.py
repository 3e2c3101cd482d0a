"""What programs have open, and what lies on filesystems that wait for a server or a program: where
that does not answer, whoever asks about a file waits without end. Light."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from autotune.system import sysfs
from autotune.system.file_tables import FileTables
from autotune.system.mountinfo import Mounted, mounted

PROC = Path("/proc")
_ASKS_ANYWAY = (*("9p", "coda", "gfs2", "ocfs2", "lustre", "beegfs", "gpfs", "vmhgfs", "vboxsf"),)
"""How the names of those begin that ask even if they are told not to (`inode.known`). Only root can
mount them."""
_WAITING = (
    *_ASKS_ANYWAY,
    *("fuse", "virtiofs", "nfs", "cifs", "smb", "ceph", "afs", "pvfs2", "ecryptfs"),
)
"""All of them, and one that lies on a folder of any other."""


def open_files() -> Iterator[tuple[int, list[Path] | None]]:
    """Each process, by its id, and the entries of its files in /proc, of which `inode.known` tells
    more without waiting; None if they must not be looked at."""
    asks = {mount.number for mount in mounted(PROC / "self") if mount.kind.startswith(_ASKS_ANYWAY)}
    for process in sorted(PROC.glob("[0-9]*")):
        try:
            opened: list[Path] | None = [each for each in _entries(process) if _has_a_path(each)]
        except PermissionError:
            opened = None
        except OSError:
            continue
        if opened and asks:
            opened = [each for each in opened if _mount(each) not in asks]
        yield int(process.name), opened


def _entries(process: Path) -> Iterator[Path]:
    """Those of its first thread, which may have ended, and of each that has files of its own."""
    tables = FileTables()
    for task in sorted((process / "task").iterdir(), key=lambda each: int(each.name)):
        if tables.add(int(task.name)):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield from (task / "fd").iterdir()


def _has_a_path(file: Path) -> bool:
    """Whether it is of a filesystem, and no pipe, socket, or epoll: what the kernel says of the
    latter may wait for the program."""
    try:
        return file.readlink().is_absolute()
    except PermissionError:
        raise
    except OSError:
        return False


def may_wait(path: Path) -> bool:
    """Whether a path is on a filesystem that waits for others, be it by way of an overlay."""
    here = {mount.place: mount for mount in mounted(PROC / "self")}
    found = here.get(_place(path, here))
    if found is None or found.kind != "overlay":
        return found is not None and found.kind.startswith(_WAITING)
    options = (option.partition("=") for option in found.options)
    folders = (
        folder
        for key, _, folders in options
        if key in ("lowerdir", "upperdir")
        for folder in folders.split(":")
    )
    below = (here.get(_place(Path(folder), here)) for folder in folders)
    return any(each is not None and each.kind.startswith(_WAITING) for each in below)


def _place(path: Path, here: Mapping[str, Mounted]) -> str:
    """Where the mount is that a path is on; "" if none is known."""
    places = (str(each) for each in (path, *path.parents))
    return next((place for place in places if place in here), "")


def _mount(file: Path) -> int:
    """The number of the mount that an open file is on; -1 if it is closed by now."""
    about = sysfs.read_or(file.parents[1] / "fdinfo" / file.name, "")
    found = re.search(r"^mnt_id:\s+(\d+)", about, re.M)
    return int(found[1]) if found else -1
