"""The scratch file, and who tries to have another one written to in its place."""

from pathlib import Path

import pytest
from journal_files import Files, files

from autotune.errors import RefusalError
from autotune.measure import scratch
from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job
from autotune.measure.scratch import scratch_file
from autotune.measure.workload import Load
from autotune.measure.write_budget import Written
from autotune.safety import separate_process

__all__ = ["files"]

SIZE = 1 << 20


@pytest.fixture
def victim(files: Files) -> Path:
    files.root.chmod(0o700)
    folder = files.root / "victim"
    folder.mkdir()
    (folder / "scratch").write_bytes(b"x" * SIZE)
    return folder


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_link_in_its_place_leads_nowhere(files: Files, victim: Path, swapped: str) -> None:
    """As root of a container may put it there whose volume the filesystem is."""
    how = (SIZE, "", files.open(), lambda _share: None, Written(), print)
    load = Load(rw="write", block_kib=64, buffered=True, sync_every=1)
    with scratch_file(files.root, *how) as target:
        place = target.path.parent if swapped == "folder" else target.path
        kept = place.with_name("kept")
        place.rename(kept)
        place.symlink_to(victim if swapped == "folder" else victim / "scratch")
        before = (kept / "scratch" if swapped == "folder" else kept).read_bytes()
        with Fio([Job("load", load, target)], 5.0, 1) as fio:
            while fio.written == 0:
                fio.poll(2.0)
        place.unlink()
        kept.rename(place)
        assert target.path.read_bytes() != before
    assert (victim / "scratch").read_bytes() == b"x" * SIZE
    assert not target.path.parent.exists()


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_link_that_is_there_as_it_is_opened_is_refused(
    files: Files, victim: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = separate_process.fill

    def swap(here: str, words: tuple[str, ...], progress: object) -> None:
        fill(here, words, progress)
        place = Path(here, words[0]) if swapped == "folder" else Path(here, *words[:2])
        place.rename(place.with_name("kept"))
        place.symlink_to(victim if swapped == "folder" else victim / "scratch")

    monkeypatch.setattr(scratch.separate_process, "fill", swap)
    how = (SIZE, "", files.open(), lambda _share: None, Written(), print)
    with pytest.raises(RefusalError, match="scratch"), scratch_file(files.root, *how):
        pass
    assert (victim / "scratch").read_bytes() == b"x" * SIZE
