"""Files that are replaced whole, and folders that are private."""

import os
from pathlib import Path

import pytest

from autotune.durable import private_folder, replace
from autotune.errors import AutotuneError


def test_what_nobody_named_is_not_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("somebody's")
    link.symlink_to(path)
    replace(link, "new")
    assert path.read_text() == "somebody's"
    assert link.read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_a_link_of_somebody_elses_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "behind").mkdir()
    link = tmp_path / "journal"
    link.symlink_to("behind")
    private_folder(link / "more")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(AutotuneError, match="journal is a link that somebody else has made"):
        private_folder(link / "others")
    assert [path.name for path in (tmp_path / "behind").iterdir()] == ["more"]


def test_every_folder_that_is_made_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_folder(tmp_path / "state/journal")
    finally:
        os.umask(before)
    for name in ("state", "state/journal"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


def test_a_link_that_leads_nowhere_is_no_folder(tmp_path: Path) -> None:
    """As to a disk that is not mounted."""
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with pytest.raises(AutotuneError, match="is not there; mount"):
        private_folder(tmp_path / "link/journal")
    assert not (tmp_path / "disk").exists()
