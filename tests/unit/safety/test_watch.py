"""What ends a run."""

import shutil
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import InUseError, StoppedError
from autotune.safety import watch as watch_module
from autotune.safety.guardian import Guardian
from autotune.safety.new_journal import new_journal
from autotune.safety.watch import Watch
from autotune.system.array import find_array


@pytest.mark.parametrize(
    ("name", "value", "ends"),
    [
        ("queue_depth", 41, False),
        ("queue_depth", "128,127,128", False),
        ("queue_depth", "128,200,41", True),
        ("queue_depth", 200, True),
        ("nr_requests", 41, True),
    ],
)
def test_a_depth_that_the_kernel_lowers_is_nobodys_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int | str, ends: bool
) -> None:
    watch = Watch(find_array("md0", fake_sysfs.raid6(tmp_path).root), ())
    watch.expect({name: 128})
    monkeypatch.setattr(watch_module, "read_setting", lambda *_: {name: value})
    assert bool(watch._foreign_change()) == ends


def test_a_journal_that_somebody_removes_ends_a_run(tmp_path: Path) -> None:
    """A kill of the run and its guardian would leave settings behind, and nobody would know."""
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    watch, path = Watch(array, ()), tmp_path / "journal/u.jsonl"
    journal = new_journal(path, "u", "/dev/md0", [array.md / "stripe_cache_size"])
    guardian = Guardian(journal)
    watch.rely_on(guardian)
    assert watch._guardian_trouble() is None
    path.unlink()
    assert "somebody has removed the journal" in (watch._guardian_trouble() or "")
    # It waits for that.
    journal.release()
    guardian.dismiss()


def test_a_spare_that_is_taken_out_ends_a_run(tmp_path: Path) -> None:
    """It may serve another array by now, whose users nobody asked."""
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    watch = Watch(array, ())
    assert watch._lost_member() is None
    shutil.rmtree(array.md / f"dev-{array.members[-1].name}")
    assert "was taken out of /dev/md0" in (watch._lost_member() or "")


@pytest.mark.parametrize(
    ("action", "says"),
    [("check", "somebody else has started a check of"), ("resync", "a resync of")],
)
def test_a_sync_of_somebody_elses_goes_first_which_is_no_failure(
    tmp_path: Path, action: str, says: str
) -> None:
    """A pass of the service is postponed, and nobody is alarmed."""
    machine = fake_sysfs.raid6(tmp_path)
    array = find_array("md0", machine.root)
    watch = Watch(array, ())
    guardian = Guardian(new_journal(tmp_path / "journal/u.jsonl", "u", "/dev/md0", []))
    watch.rely_on(guardian)
    watch.look()
    machine.put("sys/block/md0/md/sync_action", action)
    with pytest.raises(InUseError, match=f"{says} /dev/md0.* goes first"):
        watch.look()
    machine.put("sys/block/md0/md/degraded", "1")
    with pytest.raises(StoppedError, match="is degraded") as ended:
        watch.look()
    assert not isinstance(ended.value, InUseError)
    guardian.journal.release()
    guardian.dismiss()
