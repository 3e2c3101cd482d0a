"""The scratch file: the only place on a filesystem that autotune writes to."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.errors import AutotuneError, RefusalError
from autotune.safety.journal import Journal

if TYPE_CHECKING:
    # The guardian imports this file, and has to stay light.
    from autotune.measure.write_budget import Written
    from autotune.system.stack import Stack

SCRATCH_PREFIX = ".autotune-"
FILE = "scratch"
MAX_BYTES = 1 << 30
MIN_BYTES = 64 << 20
SHARE_OF_FREE = 10
BLOCK_BYTES = 1 << 20


def scratch_bytes(folder: Path) -> int:
    """How large a scratch file in `folder` may be: 1 GiB, or a tenth of what is free there.

    Raise RefusalError if that is too little to measure with.
    """
    free = shutil.disk_usage(folder).free
    size = min(MAX_BYTES, free // SHARE_OF_FREE) // BLOCK_BYTES * BLOCK_BYTES
    if size < MIN_BYTES:
        raise RefusalError(
            f"{folder} has {free >> 20} MiB free, and a scratch file may take a tenth of it but "
            f"needs {MIN_BYTES >> 20} MiB; free some space, or use another folder (--scratch)."
        )
    return size


def with_room(stack: "Stack") -> Path | None:
    """The first filesystem on an array with room for a scratch file, if there is one."""
    for mount in stack.writable:
        with contextlib.suppress(RefusalError):
            scratch_bytes(mount.mountpoint)
            return mount.mountpoint
    return None


def refuse_if_shared(folder: Path) -> None:
    """Raise RefusalError if somebody but the owner of this process could put another folder in
    the place of a scratch folder in `folder`, or of one of those above it."""
    for parent in (folder, *folder.parents):
        status = parent.stat()
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if status.st_uid not in (0, os.geteuid()) or (
            others_write and not status.st_mode & stat.S_ISVTX
        ):
            raise RefusalError(
                f"Others than root can rename what lies in {parent}, and so put another file in "
                "the place of the scratch file; name a folder that only root writes to, in folders "
                "that only root writes to (--scratch)."
            )


def remove(folder: Path) -> None:
    """Remove a scratch folder with its file. OSError if it holds anything else, which stays."""
    (folder / FILE).unlink(missing_ok=True)
    folder.rmdir()


@contextmanager
def scratch_file(
    parent: Path, journal: Journal, progress: Callable[[float], None], written: "Written"
) -> Iterator[Path]:
    """A file full of random bytes in a new folder of its own in `parent`, removed at the end.

    The folder is open to its owner alone, so that nobody can swap the file for a link. The file
    is written in full: reads of space that is only allocated never reach the disks.
    `progress` hears the share that is written, 0 to 1; `written` counts it. Raise RefusalError if
    it cannot be made, or the write budget is too small for it.
    """
    refuse_if_shared(parent)
    size = scratch_bytes(parent)
    written.check_scratch(size)
    folder = parent / (SCRATCH_PREFIX + secrets.token_hex(8))
    journal.scratch(folder)
    path = folder / FILE
    try:
        try:
            folder.mkdir(mode=0o700)
            written.expect(size)
            _fill(path, size, progress)
        except OSError as error:
            raise RefusalError(
                f"The scratch file in {parent} cannot be written: {error.strerror}."
            ) from None
        finally:
            written.add(path.stat().st_size if path.exists() else 0)
        yield path
    finally:
        with contextlib.suppress(OSError, AutotuneError):
            remove(folder)
            journal.removed(folder)


def _fill(path: Path, size: int, progress: Callable[[float], None]) -> None:
    block = os.urandom(BLOCK_BYTES)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        for done in range(0, size, BLOCK_BYTES):
            file.write(block)
            if done % (32 << 20) == 0:
                os.fdatasync(file.fileno())
                progress(done / size)
        os.fsync(file.fileno())
    progress(1.0)
