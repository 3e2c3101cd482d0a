"""What somebody else sets while values are being applied is theirs."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import StoppedError
from autotune.knobs import ALL, by_name, for_array
from autotune.problem.setting import Setting
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array

VALUES: Setting = {
    "stripe_cache_size": 1024,
    "sync_speed_min": 5000,
    "read_ahead_kb": 256,
    "scheduler": "kyber",
    "nr_requests": 64,
}


def _journal(array: Array, root: Path) -> Journal:
    paths = journaled_paths(array, for_array(array, ALL))
    return new_journal(journal_path(root, array.uuid), array.uuid, array.device, paths, root)


def test_what_we_write_ourselves_is_nobody_elses(tmp_path: Path, array: Array) -> None:
    """Be it by the kernel's doing, as where a switch of the scheduler resets a queue."""
    knobs = tuple(map(by_name, VALUES))
    journal = _journal(array, tmp_path)
    assert dict(apply(array, knobs, VALUES, journal)) == VALUES
    back: Setting = {**VALUES, "scheduler": "mq-deadline", "nr_requests": 128}
    assert dict(apply(array, knobs, back, journal)) == back


@pytest.mark.parametrize("name", ["stripe_cache_size", "read_ahead_kb"])
@pytest.mark.parametrize("turn", [1, 2, 4, 6])
def test_what_somebody_sets_meanwhile_stays_and_is_told(
    tmp_path: Path, array: Array, name: str, turn: int
) -> None:
    """Before the turn of the file, or after it."""
    knobs, journal = tuple(map(by_name, VALUES)), _journal(array, tmp_path)
    theirs = by_name(name).paths(array)[0]
    turns = 0

    def meanwhile() -> None:
        nonlocal turns
        turns += 1
        if turns == turn:
            fake_sysfs.write(theirs, "1000")

    with pytest.raises(StoppedError, match=f"somebody else set {name} to 1000"):
        apply(array, knobs, VALUES, journal, meanwhile)
    outcome = restore(journal, tmp_path)
    assert sysfs.value(theirs) == "1000"
    assert [text for text in outcome.foreign if name in text]


@pytest.mark.parametrize("together", ["scheduler", "max_sectors_kb"])
def test_what_somebody_sets_between_two_trials_is_theirs(
    tmp_path: Path, array: Array, together: str
) -> None:
    """No knob of this run, but written with one in each trial: what goes with a scheduler, and the
    read-ahead, which a larger request raises on Linux 6.9 and newer."""
    queue = array.root / "sys/block" / array.disks[0] / "queue"
    name = {"scheduler": "nr_requests", "max_sectors_kb": "read_ahead_kb"}[together]
    values = {"scheduler": ("kyber", "mq-deadline"), "max_sectors_kb": (512, 1024)}[together]
    knobs, journal = (by_name(together),), _journal(array, tmp_path)
    apply(array, knobs, {together: values[0]}, journal)
    fake_sysfs.write(queue / name, "16")
    with pytest.raises(StoppedError, match=f"somebody else set {name} to 16"):
        apply(array, knobs, {together: values[1]}, journal)
    outcome = restore(journal, tmp_path)
    assert sysfs.value(queue / name) == "16"
    assert any(name in text for text in outcome.foreign)


@pytest.mark.parametrize("name", ["iosched/read_expire", "iosched/fifo_batch", "wbt_lat_usec"])
@pytest.mark.parametrize("turn", ["first", "later"])
def test_what_somebody_sets_of_a_scheduler_is_theirs_when_it_is_switched(
    tmp_path: Path, array: Array, name: str, turn: str
) -> None:
    """After the switch it would be gone, and nobody could tell."""
    queue = array.root / "sys/block" / array.disks[0] / "queue"
    (queue / "scheduler").write_text("[mq-deadline] kyber none\n")
    array = array.now()
    knobs = (by_name("scheduler"),)
    journal = _journal(array, tmp_path)
    if turn == "later":
        apply(array, knobs, {"scheduler": "kyber"}, journal)
        apply(array, knobs, {"scheduler": "mq-deadline"}, journal)
    fake_sysfs.write(queue / name, "321")
    with pytest.raises(StoppedError, match=f"somebody else set {Path(name).name} to 321"):
        apply(array, knobs, {"scheduler": "kyber"}, journal)
    assert sysfs.value(queue / "scheduler") == "mq-deadline"
    restore(journal, tmp_path)
    assert sysfs.value(queue / name) == "321"


def test_what_the_kernel_refused_is_nobody_elses(tmp_path: Path, array: Array) -> None:
    """What was announced last did not come to be."""
    knobs, journal = (by_name("stripe_cache_size"),), _journal(array, tmp_path)
    apply(array, knobs, {"stripe_cache_size": 512}, journal)
    journal.writing(array.md / "stripe_cache_size", "1024")
    done = apply(array, knobs, {"stripe_cache_size": 2048}, journal)
    assert done["stripe_cache_size"] == 2048
