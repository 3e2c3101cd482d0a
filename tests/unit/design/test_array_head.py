"""What is cleared of an array that was made just now; with a real one:
`tests/lab/guest_design.py`."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.design import array_head
from autotune.errors import MeasurementError

UUID = "a" * 32
OPEN = os.open


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "md127"
    path.write_bytes(b"x" * (2 * array_head.HEAD_BYTES))
    monkeypatch.setattr(array_head, "read_array", lambda _name: SimpleNamespace(uuid=UUID))
    monkeypatch.setattr(array_head, "LOOK_S", 0)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What is asked of the kernel."""
    found: list[int] = []
    monkeypatch.setattr(array_head.fcntl, "ioctl", lambda _file, what: found.append(what))
    return found


def busy_for(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody holds the array at so many tries."""
    left = [times]

    def held(path: str, flags: int) -> int:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EBUSY, "Device or resource busy")
        return OPEN(path, flags)

    monkeypatch.setattr(array_head.os, "open", held)


def is_whole(device: Path) -> bool:
    return device.read_bytes() == b"x" * (2 * array_head.HEAD_BYTES)


def test_the_first_bytes_alone_are_cleared(device: Path, asked: list[int]) -> None:
    array_head.clear(str(device), UUID)
    assert device.read_bytes() == bytes(array_head.HEAD_BYTES) + b"x" * array_head.HEAD_BYTES
    assert asked == [array_head.READ_PARTITIONS]


@pytest.mark.parametrize("content", [None, "it has a signature of ext4"])
def test_whoever_holds_it_for_a_moment_is_waited_for_and_keeps_what_he_wrote(
    content: str | None, device: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_head, "signature", lambda _device: content)
    busy_for(2, monkeypatch)
    if content is None:
        array_head.clear(str(device), UUID)
        assert asked == [array_head.READ_PARTITIONS]
        return
    with pytest.raises(MeasurementError, match="cannot be cleared: it has a signature of ext4"):
        array_head.clear(str(device), UUID)
    assert is_whole(device)


def test_another_array_of_that_name_is_not_touched(device: Path, asked: list[int]) -> None:
    with pytest.raises(MeasurementError, match="it is another array by now"):
        array_head.clear(str(device), "b" * 32)
    assert is_whole(device)
    assert not asked


def test_what_cannot_be_cleared_is_said(device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file has no partitions.
    with pytest.raises(MeasurementError, match=f"{device} cannot be cleared: Inappropriate ioctl"):
        array_head.clear(str(device), UUID)
    monkeypatch.setattr(array_head, "PATIENCE_S", 0)
    busy_for(2, monkeypatch)
    with pytest.raises(MeasurementError, match="Device or resource busy"):
        array_head.clear(str(device), UUID)
