"""Originals are read once the journal is there: until then another one may be put back."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import AutotuneError
from autotune.safety import new_journal as module
from autotune.safety.new_journal import new_journal
from autotune.system import sysfs
from autotune.system.array import find_array


def test_what_a_guardian_puts_back_meanwhile_is_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_sysfs.raid6(tmp_path).put("proc/sys/kernel/random/boot_id", "boot")
    array, path = find_array("md0", tmp_path), tmp_path / "journal/a.jsonl"
    file = array.md / "stripe_cache_size"
    file.write_text("2048\n")
    real = sysfs.original

    def read(wanted: Path) -> str:
        assert path.exists()
        return real(wanted)

    def folder_made(made: Path) -> None:
        # The last moment in which the guardian of a run that was killed may end.
        file.write_text("256\n")

    monkeypatch.setattr(module.sysfs, "original", read)
    monkeypatch.setattr(module, "_refuse_where_others_write", folder_made)
    journal = new_journal(path, array.uuid, array.device, [file], tmp_path)
    assert journal.record.originals == {str(file): "256"}


def test_nothing_stays_of_a_journal_whose_originals_cannot_be_read(tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path).put("proc/sys/kernel/random/boot_id", "boot")
    array, path = find_array("md0", tmp_path), tmp_path / "journal/a.jsonl"
    with pytest.raises(AutotuneError, match=r"md cannot be read \(Is a directory\)"):
        new_journal(path, array.uuid, array.device, [array.md], tmp_path)
    assert not path.exists()
