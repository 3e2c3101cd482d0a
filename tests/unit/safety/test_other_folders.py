"""What was left with another state folder is told."""

from pathlib import Path

import pytest
from journal_files import Files, files

from autotune.safety.other_folders import left_elsewhere
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
    journal.keep(applied_path(own, "a"))
    journal.release()
    monkeypatch.setattr(Record, "of_this_boot", lambda *_: not forgotten)
    told = left_elsewhere(Path("/other"), memory)
    assert len(told) == (not forgotten)
    assert all(f"`autotune restore --all --state-dir {own}`" in text for text in told)
    assert left_elsewhere(own, memory) == []
