"""Several files in place of others: at any moment none stands beside one of another time."""

from pathlib import Path

import pytest

from autotune.deploy import whole_files
from autotune.errors import AutotuneError


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "a" / "profile", tmp_path / "b" / "rule"]
    whole_files.write_all({path: f"old {path.name}" for path in paths})
    return paths


class Killed(BaseException):
    """The power is gone."""


def stop_at(number: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the change of a folder of this number, from 1 on, be the last one."""
    seen = 0

    def sync(_folder: Path) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise error

    monkeypatch.setattr(whole_files, "sync_folder", sync)


def write_new(files: list[Path]) -> None:
    whole_files.write_all({path: f"new {path.name}" for path in files})


@pytest.mark.parametrize("number", [1, 2, 3])
def test_after_a_power_cut_there_is_none_of_another_time(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    stop_at(number, Killed(), monkeypatch)
    with pytest.raises(Killed):
        write_new(files)
    profile, rule = (path.read_text() if path.exists() else None for path in files)
    assert profile is not None
    assert rule is None or rule.split()[0] == profile.split()[0]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_error_leaves_what_was_there(
    files: list[Path], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    stop_at(number, OSError(28, "No space left on device"), monkeypatch)
    with pytest.raises(AutotuneError, match="nothing was persisted"):
        write_new(files)
    assert [path.read_text() for path in files] == ["old profile", "old rule"]
    left = [path.name for folder in (files[0].parent, files[1].parent) for path in folder.iterdir()]
    assert left == ["profile", "rule"]
