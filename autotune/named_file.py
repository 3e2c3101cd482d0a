"""Files that a person names to be written, perhaps by root in a folder of somebody else's.

Each part of the way is opened in the folder before it, and judged as it was opened: between a look
at a name and its use, the owner of its folder could put a link there.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from autotune.durable import naming, obeyed, replace, somebody_elses
from autotune.errors import AutotuneError

MOST_LINKS = 40
"""How many the kernel follows."""
PROC = Path("/proc")


class Found(NamedTuple):
    """Where a path leads. `place` names it by its folder as it was opened, whatever becomes of
    those on the way, as long as `found` lasts. `descriptor` (O_PATH) is what is there, None if
    nothing is. `streams`: the kernel's own link led there, as that of /dev/stdout does."""

    place: Path
    descriptor: int | None
    streams: bool = False


def save(
    path: Path,
    text: str,
    mode: int | None = None,
    encoding: str = "utf-8",
    folder_mode: int | None = None,
) -> None:
    """Write a file: through a link, to the file behind it, whose mode and owner stay; `mode` is
    that of a new one, `folder_mode` as in `found`. A device or pipe, such as /dev/stdout, is
    written to and stays what it is. Raise AutotuneError for what can hold no text or is a link of
    somebody else's, OSError as `replace`."""
    with naming(path), found(path, folder_mode) as (place, descriptor, streams):
        if descriptor is None:
            if path.is_symlink():
                raise AutotuneError(
                    f"{path} is a link to a file that is not there; make that, or name another one."
                )
            replace(place, text, mode, encoding)
            return
        status = os.fstat(descriptor)
        is_file = stat.S_ISREG(status.st_mode)
        if stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode) or (is_file and streams):
            # A file behind /dev/stdout may have more in it.
            with Path(f"{PROC}/self/fd/{descriptor}").open("a", encoding=encoding) as file:
                file.write(text)
        elif is_file:
            owner = (status.st_uid, status.st_gid)
            replace(place, text, status.st_mode & 0o777, encoding, owner)
        else:
            raise AutotuneError(f"{path} is no file that can be replaced; name another one.")


@contextlib.contextmanager
def found(path: Path, folder_mode: int | None = None) -> Iterator[Found]:
    """Find where a path leads. Folders that are missing on the way are made with `folder_mode`, if
    one is given. Raise AutotuneError if a link is somebody else's, OSError if there is no way."""
    with contextlib.ExitStack() as stack:

        def opened(name: str, folder: int | None = None, flags: int = os.O_NOFOLLOW) -> int:
            descriptor = os.open(name, os.O_PATH | os.O_CLOEXEC | flags, dir_fd=folder)
            stack.callback(os.close, descriptor)
            return descriptor

        folder = here = opened("/")
        parts, name, links, streams = list(path.absolute().parts[1:]), ".", 0, False
        while parts:
            name, folder = parts.pop(0), here
            try:
                here = opened(name, folder)
            except FileNotFoundError:
                if not parts:
                    yield Found(Path(f"{PROC}/self/fd/{folder}/{name}"), None)
                    return
                if folder_mode is None:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, folder_mode, dir_fd=folder)
                here = opened(name, folder)
            status = os.fstat(here)
            streams = False
            if not stat.S_ISLNK(status.st_mode):
                continue
            if status.st_dev == PROC.stat().st_dev:
                here, streams = opened(name, folder, 0), True
                continue
            if status.st_uid not in obeyed():
                raise somebody_elses(Path(os.path.realpath(f"{PROC}/self/fd/{folder}")) / name)
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            target = Path(os.readlink("", dir_fd=here))
            here = opened("/") if target.is_absolute() else folder
            parts = [*target.parts[target.is_absolute() :], *parts]
        yield Found(Path(f"{PROC}/self/fd/{folder}/{name}"), here, streams)
