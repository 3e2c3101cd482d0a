"""What is cleared of an array that was made just now; with a real one:
`tests/lab/guest_design.py`."""

import errno
from pathlib import Path

import pytest

from autotune.design import array_head
from autotune.errors import MeasurementError


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "md127"
    path.write_bytes(b"x" * (2 * array_head.HEAD_BYTES))
    return path


def test_the_first_bytes_alone_are_cleared(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(array_head.fcntl, "ioctl", lambda _file, what: asked.append(what))
    array_head.clear(str(device))
    assert device.read_bytes() == bytes(array_head.HEAD_BYTES) + b"x" * array_head.HEAD_BYTES
    assert asked == [array_head.READ_PARTITIONS]


def test_whoever_has_a_partition_open_for_a_moment_is_waited_for(
    device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = [OSError(errno.EBUSY, "Device or resource busy")] * 2

    def ioctl(_file: int, _what: int) -> None:
        if busy:
            raise busy.pop()

    monkeypatch.setattr(array_head, "LOOK_S", 0)
    monkeypatch.setattr(array_head.fcntl, "ioctl", ioctl)
    array_head.clear(str(device))
    assert not busy


def test_what_cannot_be_cleared_is_said(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file has no partitions.
    with pytest.raises(MeasurementError, match=f"{device} cannot be cleared: Inappropriate ioctl"):
        array_head.clear(str(device))

    def busy(_file: int, _what: int) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(array_head, "PATIENCE_S", 0)
    monkeypatch.setattr(array_head.fcntl, "ioctl", busy)
    with pytest.raises(MeasurementError, match="Device or resource busy"):
        array_head.clear(str(device))
