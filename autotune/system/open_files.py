"""What programs have open, but for files of filesystems that wait for a server or a program: where
that does not answer, whoever asks about such a file waits without end. Light, as the journal."""

import re
from collections.abc import Iterator
from pathlib import Path

from autotune.system import sysfs

PROC = Path("/proc")
_WAITING = ("fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs", "lustre", "beegfs", "gpfs", "orange")
"""How the names of such filesystems begin."""


def open_files() -> Iterator[tuple[int, list[Path]]]:
    """Each process, by its id, and the entries of its files in /proc. A file is left out whose
    mount no process sees any more: a server that no longer answers is unmounted so (umount -l)."""
    processes = sorted(PROC.glob("[0-9]*"))
    # What one process has open may be in the mounts of another, which gave it.
    apart = {_view(process): process for process in processes}.values()
    mounts = {m[1] for process in apart for m in _mounts(process) if not _waits(m[3])}
    for process in processes:
        try:
            files = [file for file in (process / "fd").iterdir() if _mount(file) in mounts]
        except OSError:
            continue
        yield int(process.name), files


def may_wait(path: Path) -> bool:
    """Whether a path is on such a filesystem."""
    mounts = {m[2]: _waits(m[3]) for m in _mounts(PROC / "self")}
    places = (re.sub(r"[ \t\n\\]", _octal, str(each)) for each in (path, *path.parents))
    return next((mounts[place] for place in places if place in mounts), False)


def _octal(found: re.Match[str]) -> str:
    return f"\\{ord(found[0]):03o}"


def _view(process: Path) -> tuple[str, ...]:
    """What decides which mounts a process sees: in a changed root, none that lies outside."""
    try:
        return tuple(str((process / name).readlink()) for name in ("ns/mnt", "root"))
    except OSError:
        return (str(process),)


def _mounts(process: Path) -> Iterator[re.Match[str]]:
    """Of each mount the id, the place and the kind: proc_pid_mountinfo(5)."""
    text = sysfs.read_or(process / "mountinfo", "")
    return re.finditer(r"^(\d+) \S+ \S+ [^ ]+ ([^ ]+) .*? - (\S+) ", text, re.M)


def _waits(kind: str) -> bool:
    return kind.startswith(_WAITING)


def _mount(file: Path) -> str:
    """The id of the mount that an open file is on."""
    about = sysfs.read_or(file.parents[1] / "fdinfo" / file.name, "")
    found = re.search(r"^mnt_id:\s+(\d+)", about, re.M)
    return found[1] if found else ""
