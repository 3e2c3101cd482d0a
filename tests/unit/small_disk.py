"""A small file system of its own, to be filled or made read-only."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FILLER = "filler"


@contextmanager
def small_disk(where: Path, size_kib: int = 1024) -> Iterator[Path]:
    """A tmpfs mounted on the new folder `where`; skips the test where that is not allowed."""
    where.mkdir()
    words = ("mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(where))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    try:
        yield where
    finally:
        subprocess.run(("umount", "--lazy", where), check=True)


def fill(where: Path, leave_kib: int = 0) -> None:
    """Take all space but so much."""
    with (where / FILLER).open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            file.truncate(max(0, file.tell() // 4096 * 4096 - leave_kib * 1024))


def free(where: Path) -> None:
    (where / FILLER).unlink()


def make_read_only(where: Path) -> None:
    """Mode bits would not stop root."""
    subprocess.run(("mount", "-o", "remount,ro", where), check=True)
