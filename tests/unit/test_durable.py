"""Files that a person names to be written."""

import os
from pathlib import Path

import pytest

from autotune.durable import private_folder, save
from autotune.errors import AutotuneError


def test_a_device_stays_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.symlink_to("/dev/null")
    save(path, "a report")
    assert path.is_char_device()
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("what was there before")
    save(path, "new")
    assert path.read_text() == "new"


def test_what_holds_no_text_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AutotuneError, match=f"{tmp_path} is no file that can be replaced"):
        save(tmp_path, "a report")


def test_every_folder_that_is_made_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_folder(tmp_path / "state/journal")
    finally:
        os.umask(before)
    for name in ("state", "state/journal"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
