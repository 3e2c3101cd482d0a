"""What was left with another state folder is told."""

import time
from pathlib import Path

import pytest
from journal_files import Files, files

from autotune.safety import other_folders
from autotune.safety.handed_over import keep
from autotune.safety.journal import Journal
from autotune.safety.other_folders import is_applied_elsewhere, left_elsewhere
from autotune.safety.paths import applied_path
from autotune.safety.record import Record

__all__ = ["files"]


def test_a_journal_of_another_state_folder_is_told_until_it_is_gone(files: Files) -> None:
    memory, own = files.root / "memory", files.path.parent.parent
    (memory / "locks").mkdir(parents=True)
    (memory / "array-a").write_text(f"1\n{files.path}\n")
    (memory / "disk-sda").write_text(f"1\n/nowhere/journal/a.jsonl\n{files.path}\n")
    journal = files.open()
    assert left_elsewhere(Path("/other"), memory) == [], "it is under way"
    journal.release()
    (told,) = left_elsewhere(Path("/other"), memory)
    assert f"`autotune restore --state-dir {own}`" in told
    assert left_elsewhere(own, memory) == []
    files.path.unlink()
    assert left_elsewhere(Path("/other"), memory) == []
    assert left_elsewhere(Path("/other"), files.root / "none") == []


@pytest.mark.parametrize("forgotten", [False, True])
def test_what_was_applied_with_another_state_folder_is_told_until_a_reboot(
    files: Files, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> None:
    memory, own = files.root / "memory", files.path.parent.parent
    memory.mkdir()
    (memory / "array-a").write_text(f"1\n{files.path}\n")
    journal = files.open()
    keep(journal, applied_path(own, "a"))
    journal.release()
    monkeypatch.setattr(Record, "of_this_boot", lambda *_: not forgotten)
    told = left_elsewhere(Path("/other"), memory)
    assert len(told) == (not forgotten)
    assert all(f"`autotune restore --all --state-dir {own}`" in text for text in told)
    assert left_elsewhere(own, memory) == []


def test_a_folder_whose_disk_hangs_keeps_nobody(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_folders, "ANSWER_S", 0.5)
    memory, hanging = files.root / "memory", files.root / "hanging"
    memory.mkdir()
    (memory / "array-a").write_text(f"1\n{files.path}\n{hanging}/journal/a.jsonl\n")
    files.open().release()
    applied_path(hanging, "a").parent.mkdir(parents=True)
    applied_path(hanging, "a").touch()
    load = Journal.load

    def wait_for_its_disk(path: Path) -> Journal:
        time.sleep(60 if path.is_relative_to(hanging) else 0)
        return load(path)

    monkeypatch.setattr(Journal, "load", wait_for_its_disk)
    began = time.monotonic()
    left, unknown = left_elsewhere(Path("/other"), memory)
    assert str(files.path) in left
    assert f"the state folder {hanging} is not known" in unknown
    assert is_applied_elsewhere("a", Path("/other"), memory), "it may be"
    assert not is_applied_elsewhere("a", hanging, memory)
    assert time.monotonic() - began < 20
