"""Files that outlive a crash: replaced whole or added to, and written through to the disk. Those
that say what to do after one are read only if they are root's own. Light."""

import contextlib
import functools
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from autotune.errors import AutotuneError

CMDLINE = Path("/proc/cmdline")
LAB_USER = "autotune.lab_user="
"""On the command line of a lab's kernel: the number of the user who has started it."""


def obeyed() -> set[int]:
    """The users whose files are obeyed: root, who runs this, and who has started the lab."""
    return {0, os.geteuid(), *lab_user()}


@functools.cache
def lab_user() -> Sequence[int]:
    """Who has started the lab that this is in, if it is one and that is not root: what its root
    writes in folders of the host belongs to them there."""
    words: list[str] = []
    with contextlib.suppress(OSError):
        words = CMDLINE.read_text(errors="replace").split()
    numbers = (word.removeprefix(LAB_USER) for word in words if word.startswith(LAB_USER))
    return [int(number) for number in numbers if number.isdecimal() and int(number)]


def open_roots_own(path: Path) -> BinaryIO:
    """Open a journal for reading. Raise AutotuneError if others than root can have written it:
    its texts go into the kernel."""
    # Not blocking: it may be a FIFO.
    descriptor = open_to_read(path, os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if (
        path.is_symlink()
        or not stat.S_ISREG(status.st_mode)
        or status.st_uid not in obeyed()
        or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        os.close(descriptor)
        raise AutotuneError(
            f"The journal {path} is no plain file that only root can write to, so it is "
            "ignored; find out who made it, and remove it."
        )
    return os.fdopen(descriptor, "rb")


def open_to_read(path: Path, flags: int = 0) -> int:
    """A descriptor for reading that leaves the time of access alone, where this user may do that:
    to note it could wait for a disk that does not answer, though the text is in memory."""
    flags |= os.O_RDONLY | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        return os.open(path, flags)


def append(descriptor: int, entry: Mapping[str, object]) -> None:
    """Add a line of JSON to a file that is open for reading, too; durably, or nothing. OSError if
    the disk does not take it."""
    data = (json.dumps(entry) + "\n").encode()
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        # A last line that was cut short is none, and would swallow this one.
        size = os.pread(descriptor, size, 0).rfind(b"\n") + 1
        os.ftruncate(descriptor, size)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        # Part of a line would swallow the next one.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def beside(path: Path) -> Path:
    """Where what is to replace a file is written first."""
    return path.with_name(f".{path.name}.part")


def write_beside(
    path: Path,
    text: str,
    mode: int | None = None,
    encoding: str = "utf-8",
    owner: tuple[int, int] | None = None,
) -> Path:
    """Write what is to replace a file beside it, durably; return where. `mode`: the permissions,
    whatever the umask; `owner`: user and group, as far as this user may give files away. Raise
    OSError, leaving nothing, if the disk does not take it."""
    part = beside(path)
    part.unlink(missing_ok=True)
    try:
        with naming(path), part.open("x", encoding=encoding) as file:
            if owner is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), *owner)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return part


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an error the name that a person knows: of a write to an open file Python knows none."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def replace(
    path: Path,
    text: str,
    mode: int | None = None,
    encoding: str = "utf-8",
    owner: tuple[int, int] | None = None,
) -> None:
    """Write a file, whole or not at all, durably; a link of that name is replaced, never followed.
    Raise OSError if the disk does not take it."""
    part = write_beside(path, text, mode, encoding, owner)
    try:
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, open to this user alone. `mkdir` gives
    its mode only to the last one. Raise AutotuneError if a link of somebody else's leads there, or
    one that leads nowhere."""
    for each in reversed([folder, *folder.parents]):
        refuse_others_link(each)
        if not each.exists():
            if each.is_symlink():
                raise AutotuneError(
                    f"{each} leads to {each.readlink()}, which is not there; mount what that is "
                    "on, or choose another place."
                )
            each.mkdir(mode=0o700, exist_ok=True)


def refuse_others_link(path: Path) -> None:
    """Raise AutotuneError if a path is a link that neither root nor who runs this has made: it may
    lead to what they would not write to."""
    if path.is_symlink() and path.lstat().st_uid not in obeyed():
        raise somebody_elses(path)


def somebody_elses(link: Path) -> AutotuneError:
    """What to raise where such a link leads."""
    return AutotuneError(
        f"{link} is a link that somebody else has made, so nothing is written there; remove it, or "
        "choose another place."
    )


def sync_folder(folder: Path) -> None:
    """Make names that were made or removed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
