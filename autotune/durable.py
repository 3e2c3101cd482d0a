"""Files that say what to do after a crash: written through to the disk, read only if they are
root's own. Light, as the journal."""

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from autotune.errors import AutotuneError


def open_roots_own(path: Path) -> BinaryIO:
    """Open a journal for reading. Raise AutotuneError if others than root can have written it:
    its texts go into the kernel."""
    # Not blocking: it may be a FIFO.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if (
        path.is_symlink()
        or not stat.S_ISREG(status.st_mode)
        or status.st_uid not in (0, os.geteuid())
        or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        os.close(descriptor)
        raise AutotuneError(
            f"The journal {path} is no plain file that only root can write to, so it is not "
            "heeded; find out who made it, and remove it."
        )
    return os.fdopen(descriptor, "rb")


def append(descriptor: int, entry: Mapping[str, object]) -> None:
    """Add a line of JSON, durably, or nothing. OSError if the disk does not take it."""
    data = (json.dumps(entry) + "\n").encode()
    size = os.fstat(descriptor).st_size
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        # Part of a line would swallow the next one.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def sync_folder(folder: Path) -> None:
    """Make names that were made or removed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
