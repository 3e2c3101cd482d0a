"""Whether a run can start."""

import shutil
from pathlib import Path

import fake_sysfs
import pytest

from autotune.preflight import checks
from autotune.safety.paths import applied_path, journal_path
from autotune.store.database import Store
from autotune.store.opening import FILE_NAME
from autotune.system import noted_records
from autotune.system.array import find_array
from autotune.tuning import diagnosis
from autotune.tuning.diagnosis import diagnose


def test_what_an_earlier_run_left_prevents_one_and_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    array = find_array("md0", fake_sysfs.raid6(tmp_path / "machine").root)
    journal = journal_path(tmp_path, array.uuid)
    journal.parent.mkdir()
    journal.write_text("{}\n")
    found = diagnose(array, tmp_path, ())
    assert found.run is None
    assert found.findings[0].severity == "refuse"
    assert "run `autotune restore`" in found.findings[0].message


def test_a_damaged_store_prevents_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    array = find_array("md0", fake_sysfs.raid6(tmp_path / "machine").root)
    damaged = "is damaged"
    Store(tmp_path)
    assert not any(damaged in each.message for each in diagnose(array, tmp_path, ()).findings)
    store = tmp_path / FILE_NAME
    store.write_bytes(b"garbage" * 1000)
    found = diagnose(array, tmp_path, ())
    assert found.run is None
    assert [each.severity for each in found.findings if damaged in each.message] == ["refuse"]
    assert store.read_bytes() == b"garbage" * 1000
    # Who may not look at the store is not told to mend it.
    monkeypatch.setattr(checks, "not_root", lambda _: "A run needs root.")
    assert not any(damaged in each.message for each in diagnose(array, tmp_path, ()).findings)


def test_a_record_that_somebody_has_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_records, "NOTES", tmp_path / "notes")
    array = find_array("md0", fake_sysfs.raid6(tmp_path / "machine").root)
    record = applied_path(tmp_path / "state", array.uuid)
    record.parent.mkdir(parents=True)
    record.touch()
    noted_records.note(record)
    removed = f"{record}, which somebody has removed"
    assert not any(removed in each.message for each in diagnose(array, tmp_path, ()).findings)
    shutil.rmtree(tmp_path / "state")
    found = diagnose(array, tmp_path, ()).findings
    assert [each.severity for each in found if removed in each.message] == ["warn"]


@pytest.mark.parametrize("bound", ["max", "8192"])
def test_the_check_of_a_run_that_is_under_way_is_not_named_as_a_second_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    machine = fake_sysfs.raid6(tmp_path / "machine")
    machine.put("sys/block/md0/md/sync_action", "check")
    machine.put("sys/block/md0/md/sync_max", bound)
    array = find_array("md0", machine.root)
    alone = [finding.message for finding in diagnose(array, tmp_path, ()).findings]
    assert any("stop the check" in text for text in alone)
    monkeypatch.setattr(diagnosis, "is_locked", lambda uuid: uuid == array.uuid)
    found = diagnose(array, tmp_path, ())
    assert found.run is None
    assert [f.message for f in found.findings if f.severity == "refuse"] == [
        "A run on /dev/md0 is under way; wait for its end, or stop it."
    ]
    assert not any("sync_max" in finding.message for finding in found.findings)
