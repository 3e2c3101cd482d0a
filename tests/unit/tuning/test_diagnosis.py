"""Whether a run can start."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.preflight import checks
from autotune.safety.paths import journal_path
from autotune.system.array import find_array
from autotune.tuning.diagnosis import diagnose


def test_what_an_earlier_run_left_prevents_one_and_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    array = find_array("md0", fake_sysfs.raid6(tmp_path / "machine").root)
    journal = journal_path(tmp_path, array.uuid)
    journal.parent.mkdir()
    journal.write_text("{}\n")
    diagnosis = diagnose(array, tmp_path, ())
    assert diagnosis.run is None
    assert diagnosis.findings[0].severity == "refuse"
    assert "run `autotune restore`" in diagnosis.findings[0].message
