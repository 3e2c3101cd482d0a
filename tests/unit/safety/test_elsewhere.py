"""What was left with another state folder is told."""

from pathlib import Path

from journal_files import Files, files

from autotune.safety.elsewhere import left_elsewhere

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
