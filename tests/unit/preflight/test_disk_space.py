"""Whether a run could keep what it finds."""

import os
from pathlib import Path

import pytest
from small_disk import fill, make_read_only, small_disk

from autotune.preflight.disk_space import no_room

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root is told")


def test_a_folder_with_room_is_left_as_it_was(tmp_path: Path) -> None:
    assert no_room(tmp_path) is None
    assert no_room(tmp_path / "new" / "folder") is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_to_be_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        for folder in (disk, disk / "new"):
            assert "is full; free some space" in str(no_room(folder))


def test_a_disk_that_takes_no_writes_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        make_read_only(disk)
        assert str(no_room(disk)).startswith(f"Nothing can be written to {disk} (Read-only")
        (tmp_path / "file").touch()
        assert "Nothing can be written" in str(no_room(tmp_path / "file"))
