"""What a pass of re-tuning refuses to look at."""

import shutil
from datetime import datetime
from pathlib import Path
from unittest.mock import MagicMock

import fake_sysfs
import pytest
from fake_sysfs import raid6
from profiles_in_force import apply_values, start
from some_profile import profile

from autotune.errors import InUseError, RefusalError, RestoreError
from autotune.service import managed_array
from autotune.service.config import Config
from autotune.service.managed_array import ManagedArray, Polite
from autotune.service.quiet_time import parse_window
from autotune.system import sysfs
from autotune.system.array import read_array


def test_a_setting_that_the_array_does_not_have_any_more_is_named(tmp_path: Path) -> None:
    """As after `mdadm --grow --level=0`, where a missing file of sysfs would say little."""
    root = raid6(tmp_path, "raid0").root
    array = read_array("md0", root)
    with pytest.raises(RefusalError, match="has no stripe_cache_size, which the profile") as told:
        ManagedArray(array, profile(), Config().care(array.uuid), tmp_path, MagicMock())
    assert "autotune restore /dev/md0" in str(told.value)


def test_what_is_not_recorded_any_more_is_not_said_to_be_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the state folder was removed in the midst of a pass."""
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    start(tmp_path)
    array = read_array("md0", fake_sysfs.raid6(tmp_path).root)
    cache, values = array.md / "stripe_cache_size", {"stripe_cache_size": 512}
    applied = apply_values(array, values, tmp_path)
    managed = ManagedArray(array, applied, Config().care(array.uuid), tmp_path, MagicMock())
    managed.back_to_originals()
    assert sysfs.value(cache) == "256"
    apply_values(array, values, tmp_path)
    shutil.rmtree(tmp_path / "applied")
    with pytest.raises(RestoreError, match=r"stripe_cache_size \(512, before 256\) could not"):
        managed.back_to_originals()
    assert sysfs.value(cache) == "512"


def test_a_pass_ends_before_its_window_closes() -> None:
    now = datetime(2026, 11, 29, 3, 50)
    window = parse_window("22:00-04:00")
    polite = Polite(MagicMock(), MagicMock(), window, lambda: now)
    polite.refuse_outside_window()
    measured = MagicMock(seconds=60.0, measured=())
    polite.trial(measured, None)
    # Another one like the last would not end in it.
    now = datetime(2026, 11, 29, 3, 59, 30)
    with pytest.raises(InUseError, match="window of the array closes"):
        polite.trial(measured, None)
    now = datetime(2026, 11, 29, 4, 0)
    with pytest.raises(InUseError, match="window"):
        polite.refuse_outside_window()
    Polite(MagicMock(), MagicMock()).refuse_outside_window()


def test_a_pass_ends_where_others_use_the_array_between_its_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[float] = []
    monkeypatch.setattr(managed_array, "busy_share", lambda *_: seen.pop(0))
    polite, measured = Polite(MagicMock(), MagicMock()), MagicMock(seconds=60.0, measured=("read",))
    # What it wrote itself may keep the disks busy for a while.
    seen[:] = [0.9, 0.5, 0.02]
    polite.trial(measured, None)
    seen[:] = [0.9, 0.5, 0.3, 0.3, 0.25, 0.0]
    with pytest.raises(InUseError, match="busy 25% of the time"):
        polite.trial(measured, None)
