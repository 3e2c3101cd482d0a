"""What keeps a raw array from being written to, and needs no array; the rest is in the lab."""

import os
import subprocess
from pathlib import Path

import pytest

from autotune.preflight.raw_device import BCACHEFS, BCACHEFS_AT, EDGE_BYTES, GPT, unknown_to_blkid
from autotune.system import device_users

NOTHING = bytes(EDGE_BYTES)


def test_what_blkid_does_not_know_is_seen() -> None:
    assert unknown_to_blkid(NOTHING, NOTHING) is None
    start = NOTHING[:BCACHEFS_AT] + BCACHEFS + NOTHING
    assert "bcachefs" in str(unknown_to_blkid(start, NOTHING))
    for sector in (512, 4096):
        end = NOTHING[:-sector] + GPT.ljust(sector, b"\0")
        assert "partition table" in str(unknown_to_blkid(NOTHING, end))


def test_a_program_is_known_by_what_it_opened_not_by_the_name_that_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain file stands for the device."""
    monkeypatch.setattr(device_users, "PATIENCE_S", 0.0)
    monkeypatch.setattr(device_users, "_number", _inode)
    device, link = tmp_path / "device", tmp_path / "link"
    device.write_bytes(b"")
    os.link(device, link)
    assert device_users.program_with(device) is None
    with subprocess.Popen(["sleep", "60"], stdin=link.open("rb")) as process:
        found = device_users.program_with(device)
        process.kill()
    assert found == f"sleep (process {process.pid})"


def _inode(path: Path) -> int | None:
    try:
        return hash((path.stat().st_dev, path.stat().st_ino))
    except OSError:
        return None
