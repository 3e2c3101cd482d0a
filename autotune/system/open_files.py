"""What programs have open, but for files of filesystems that wait for a server or a program: where
that does not answer, whoever asks about such a file waits without end. Light, as the journal."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from autotune.system import sysfs
from autotune.system.mountinfo import Mounted, mounted

PROC = Path("/proc")
_WAITING = (
    *("fuse", "virtiofs", "nfs", "cifs", "smb", "9p", "ceph", "afs", "coda", "lustre", "beegfs"),
    *("gpfs", "pvfs2", "vmhgfs", "vboxsf", "ecryptfs"),
)
"""How the names of such filesystems begin, and of one that lies on a folder of any other."""
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs", "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs")
"""What is known of an open file needs nobody there, whoever has mounted it."""


def open_files() -> Iterator[tuple[int, list[Path]]]:
    """Each process, by its id, and the entries of its files in /proc. A file is left out whose
    mount no process sees any more: a server that no longer answers is unmounted so (umount -l)."""
    processes = sorted(PROC.glob("[0-9]*"))
    # What one process has open may be in the mounts of another, which gave it.
    apart = {_view(process): process for process in processes}.values()
    here = _here()
    mounts = {
        mount.number
        for process in apart
        for ours in [_is_ours(process)]
        for mount in mounted(process)
        # Anybody can mount an overlay of what does not answer, in a user namespace; elsewhere that
        # is root's to do.
        if mount.kind in _IN_MEMORY or (ours and not _waits(mount, here))
    }
    for process in processes:
        try:
            files = [file for file in (process / "fd").iterdir() if _mount(file) in mounts]
        except OSError:
            continue
        yield int(process.name), files


def may_wait(path: Path) -> bool:
    """Whether a path is on such a filesystem."""
    here = _here()
    found = here.get(_place(path, here))
    return found is not None and _waits(found, here)


def _view(process: Path) -> tuple[str, ...]:
    """What decides which mounts a process sees, and who has made them: in a changed root, none
    that lies outside."""
    try:
        return tuple(str((process / name).readlink()) for name in ("ns/mnt", "root", "ns/user"))
    except OSError:
        return (str(process),)


def _is_ours(process: Path) -> bool:
    """Whether a process is in no user namespace of its own, as far as that is seen."""
    try:
        return (process / "ns/user").readlink() == (PROC / "self/ns/user").readlink()
    except FileNotFoundError:
        # The kernel has none.
        return True
    except OSError:
        return False


def _waits(mount: Mounted, here: Mapping[str, Mounted]) -> bool:
    """`here`: what this process sees, by place."""
    if mount.kind != "overlay":
        return mount.kind.startswith(_WAITING)
    options = (option.partition("=") for option in mount.options)
    folders = (
        folder
        for key, _, folders in options
        if key in ("lowerdir", "upperdir")
        for folder in folders.split(":")
    )
    below = (here.get(_place(Path(folder), here)) for folder in folders)
    return any(each is not None and each.kind.startswith(_WAITING) for each in below)


def _here() -> dict[str, Mounted]:
    return {mount.place: mount for mount in mounted(PROC / "self")}


def _place(path: Path, here: Mapping[str, Mounted]) -> str:
    """Where the mount is that a path is on; "" if none is known."""
    places = (str(each) for each in (path, *path.parents))
    return next((place for place in places if place in here), "")


def _mount(file: Path) -> int:
    """The number of the mount that an open file is on; -1 if it is closed by now."""
    about = sysfs.read_or(file.parents[1] / "fdinfo" / file.name, "")
    found = re.search(r"^mnt_id:\s+(\d+)", about, re.M)
    return int(found[1]) if found else -1
