"""Undoing a persisted profile: what else a switch of the scheduler back would reset."""

from collections.abc import Mapping
from pathlib import Path

import fake_sysfs
import pytest

from autotune.deploy import undo
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system import sysfs
from autotune.system.array import Array, find_array


@pytest.fixture
def array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Array:
    fake_sysfs.raid6(tmp_path)
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True, exist_ok=True)
    boot.write_text("b\n")
    return find_array("md0", tmp_path)


def put_back(array: Array, files: Mapping[Path, str]) -> Journal:
    paths = [*files, *(path.with_name("nr_requests") for path in files)]
    path = journal_path(array.root / "state", array.uuid)
    journal = new_journal(path, array.uuid, array.device, paths, array.root)
    undo._write(files, journal)
    return journal


@pytest.mark.parametrize(
    ("length", "back", "left"),
    [
        ("100", "mq-deadline", "100"),
        ("100", "none", str(fake_sysfs.DEPTH)),
        ("40", "none", "40"),
        # As the kernel made it.
        ("128", "mq-deadline", "128"),
        ("128", "none", str(fake_sysfs.DEPTH)),
    ],
)
def test_the_length_of_a_queue_that_somebody_has_set_stays(
    array: Array, length: str, back: str, left: str
) -> None:
    scheduler = array.root / "sys/block" / array.disks[0] / "queue/scheduler"
    fake_sysfs.write(scheduler, "kyber")
    queue = scheduler.with_name("nr_requests")
    queue.write_text(f"{length}\n")
    journal = put_back(array, {scheduler: back})
    assert sysfs.value(queue) == left
    assert journal.record.cause(str(queue)) is not None
    journal.release()


@pytest.mark.parametrize(("back", "left"), [("none", None), ("mq-deadline", "500")])
def test_a_setting_that_goes_with_its_scheduler_is_no_fault(
    array: Array, back: str, left: str | None
) -> None:
    scheduler = array.root / "sys/block" / array.disks[0] / "queue/scheduler"
    own = scheduler.parent / "iosched/read_expire"
    own.write_text("100\n")
    put_back(array, {own: "500", scheduler: back}).release()
    assert sysfs.value(scheduler) == back
    assert (sysfs.value(own) if own.exists() else None) == left
