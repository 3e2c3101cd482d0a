"""Files that a person names to be written."""

from pathlib import Path

import pytest

from autotune.durable import save
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
