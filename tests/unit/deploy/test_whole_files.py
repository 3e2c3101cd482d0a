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
    # As somebody has edited it who writes no UTF-8.
    old = [b"old profile", "# f\u00fcr\r\nold rule\n".encode("latin-1")]
    files[1].write_bytes(old[1])
    seen = 0

    def sync(_folder: Path) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_files, "sync_folder", sync)
    with pytest.raises(AutotuneError, match="nothing was persisted"):
        whole_files.write_all({path: f"new {path.name}" for path in files})
    assert [path.read_bytes() for path in files] == old
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["profile", "rule"]
