"""Several files in place of others."""

from pathlib import Path

import pytest

from autotune.deploy import whole_files
from autotune.errors import AutotuneError


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    files = [tmp_path / "a" / "profile", tmp_path / "b" / "rule"]
    whole_files.write_all({path: f"old {path.name}" for path in files})
    seen = 0

    def sync(_folder: Path) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_files, "sync_folder", sync)
    with pytest.raises(AutotuneError, match="nothing was persisted"):
        whole_files.write_all({path: f"new {path.name}" for path in files})
    assert [path.read_text() for path in files] == ["old profile", "old rule"]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["profile", "rule"]
