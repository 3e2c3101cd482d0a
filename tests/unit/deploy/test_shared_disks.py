"""Two arrays on the same disks, a profile on each: whichever is undone first, the disks get back
what they had before both."""

import contextlib
import os
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from some_profile import profile

from autotune.deploy import persist
from autotune.deploy.apply import known_here
from autotune.deploy.persist import profile_path, rule_path
from autotune.deploy.undo import before_persisted_each
from autotune.errors import AutotuneError
from autotune.knobs import ALL, for_array
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import save_profile
from autotune.safety.applied import hand_down, keep_applied
from autotune.safety.apply import journaled_paths
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.record import BOOT_ID
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array, list_arrays

ORIGINAL = "mq-deadline"


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    fake_sysfs.raid6(tmp_path)
    block, boot = tmp_path / "sys/block", tmp_path / BOOT_ID.relative_to("/")
    boot.parent.mkdir(parents=True, exist_ok=True)
    boot.write_text("b\n")
    shutil.copytree(block / "md0", block / "md1", symlinks=True)
    (block / "md1/md/uuid").write_text("a" * 32 + "\n")
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    return list_arrays(tmp_path)


def scheduler(array: Array) -> Path:
    return array.root / "sys/block" / array.disks[0] / "queue/scheduler"


def applied(array: Array, state: Path, value: str) -> None:
    """As `autotune apply` leaves it."""
    paths = journaled_paths(array, for_array(array, ALL))
    path = journal_path(state, array.uuid)
    journal = new_journal(path, array.uuid, array.device, paths, array.root)
    journal.writing(scheduler(array), value)
    journal.store(scheduler(array), value)
    journal.settled()
    keep_applied(profile({"scheduler": value}), array, journal, state)
    journal.release()


@pytest.mark.parametrize("values", [("none", "bfq"), ("none", ORIGINAL), ("none", "none")])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_was_applied(
    tmp_path: Path, arrays: list[Array], values: tuple[str, str], order: tuple[int, int]
) -> None:
    for array, value in zip(arrays, values, strict=True):
        applied(array, tmp_path / "state", value)
    for number in order:
        path = applied_path(tmp_path / "state", arrays[number].uuid)
        hand_down(path)
        journal = Journal.claimed(path)
        assert restore(journal, tmp_path).complete
        journal.release()
    assert sysfs.value(scheduler(arrays[0])) == ORIGINAL


def test_what_is_persisted_has_the_originals_of_both(
    tmp_path: Path, arrays: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one's profile is replaced after the second one's was persisted over it."""
    monkeypatch.setattr(persist, "list_arrays", lambda _root: arrays)
    monkeypatch.setattr(persist, "check", lambda *_: None)
    monkeypatch.setattr(persist, "tell_udev", lambda *_: None)
    for number, before, value in ((0, ORIGINAL, "bfq"), (1, "bfq", "kyber"), (0, ORIGINAL, "none")):
        made = profile({"scheduler": value}).model_copy(update={"before": {"scheduler": before}})
        persist.persist(made, arrays[number], tmp_path / "state", lambda _text: None)
    for array in arrays:
        kept = load_profile(profile_path(array.uuid, tmp_path))
        assert kept.before == {"scheduler": ORIGINAL}


def test_what_is_persisted(tmp_path: Path, arrays: list[Array]) -> None:
    for number, (before, value) in enumerate(((ORIGINAL, "none"), ("none", "bfq"))):
        uuid = arrays[number].uuid
        made = profile({"scheduler": value}).model_copy(update={"before": {"scheduler": before}})
        path = profile_path(uuid, tmp_path)
        save_profile(made, path)
        os.utime(path, (number, number))
        rule = rule_path(uuid, tmp_path)
        rule.parent.mkdir(parents=True, exist_ok=True)
        rule.touch()
    fake_sysfs.write(scheduler(arrays[0]), "bfq")
    for disk in arrays[0].disks:
        fake_sysfs.write(tmp_path / "sys/block" / disk / "queue/scheduler", "bfq")
    found = before_persisted_each(arrays, tmp_path / "state")
    assert found[arrays[1].device] == {"scheduler": ORIGINAL}


def test_what_is_applied_has_the_originals_of_both(tmp_path: Path, arrays: list[Array]) -> None:
    """Else it would be persisted with what the other's profile had set."""
    made = profile({"scheduler": "none"}).model_copy(update={"before": {"scheduler": ORIGINAL}})
    path = profile_path(arrays[0].uuid, tmp_path)
    save_profile(made, path)
    new = profile({"scheduler": "bfq"})
    found = known_here(new, arrays[1], {"scheduler": "none"}, tmp_path / "state")
    assert found.before == {"scheduler": ORIGINAL}


def test_what_anothers_profile_covers_goes_back_with_it(
    tmp_path: Path, arrays: list[Array]
) -> None:
    """Persisted for one array, and set over by udev's order or by hand for the other."""
    state = tmp_path / "state"
    for array, value, before in zip(arrays, ("bfq", "none"), (ORIGINAL, "bfq"), strict=True):
        made = profile({"scheduler": value}).model_copy(update={"before": {"scheduler": before}})
        save_profile(made, profile_path(array.uuid, tmp_path))
    for disk in arrays[0].disks:
        fake_sysfs.write(tmp_path / "sys/block" / disk / "queue/scheduler", "none")
    assert before_persisted_each(arrays, state)[arrays[0].device] == {"scheduler": ORIGINAL}
    # Alone, it is the other array's.
    assert before_persisted_each(arrays[:1], state)[arrays[0].device] == {}


@pytest.mark.parametrize("full", [False, True])
def test_a_kill_while_originals_are_taken_over_forgets_none(
    tmp_path: Path, arrays: list[Array], monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Nor does a disk that is full by then."""
    state = tmp_path / "state"
    applied(arrays[0], state, "bfq")
    path = journal_path(state, arrays[1].uuid)
    paths = journaled_paths(arrays[1], for_array(arrays[1], ALL))
    journal = new_journal(path, arrays[1].uuid, arrays[1].device, paths, tmp_path)
    add, left = Journal._add, [0 if full else 1]

    def some(self: Journal, entry: dict[str, object]) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise AutotuneError("No space left on device")
        add(self, entry)

    names = set(journal.record.originals)
    monkeypatch.setattr(Journal, "_add", some)
    with contextlib.suppress(AutotuneError):
        journal.inherit(scheduler(arrays[1]), ORIGINAL)
    found = Journal.load(path).record.originals
    assert set(found) == names
    assert found[str(scheduler(arrays[1]))] == ("bfq" if full else ORIGINAL)
