"""A disk that does not take what a slice is filled with."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autotune.design.filling import fill
from autotune.errors import MeasurementError


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
def test_a_disk_that_refuses_a_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """As one that fails, or turns read-only, in the midst of it."""
    file = tmp_path / "disk"
    file.touch()

    @contextlib.contextmanager
    def held() -> Iterator[int]:
        descriptor = os.open(file, os.O_WRONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwritev", refuse)
    disk = cast(Any, SimpleNamespace(device="/dev/sdb", held=held))
    with pytest.raises(MeasurementError, match=f"/dev/sdb cannot be written: {os.strerror(code)}"):
        fill([disk], 0, 1 << 20, lambda: None, lambda _share: None)
