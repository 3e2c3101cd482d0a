"""What is kept in force: what its rule sets at each boot, and what its record speaks for."""

import re
from pathlib import Path
from typing import BinaryIO

import fake_sysfs
import pytest
from profiles_in_force import apply_values, persist_values, schedulers, set_all, undo
from some_profile import profile

from autotune.deploy import persisted
from autotune.deploy.in_force import active
from autotune.deploy.persist import persist
from autotune.knobs import ALL, by_name, for_array
from autotune.safety import applied as applied_module
from autotune.safety import guardian, heartbeat
from autotune.safety.applied import keep_applied
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.deferred_restore import put_back
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.put_back_each import remove_kept_scratch_of_each
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array


def _persisted_lengths(array: Array, root: Path) -> list[str]:
    """What the rule sets the queues' lengths to, once for disks and once for partitions."""
    rule = persisted.rule_path(array.uuid, root).read_text()
    return re.findall(r'ATTR{queue/nr_requests}="(\d+)"', rule)


def test_a_length_that_a_switch_has_left_is_persisted_as_it_was_measured(
    tmp_path: Path, array: Array
) -> None:
    """At a boot the scheduler would make another one of it."""
    for path in schedulers(array):
        fake_sysfs.write(path, "none")
    array = array.now()
    persist_values(array, {"scheduler": "kyber"}, tmp_path)
    lengths = {sysfs.value(path.with_name("nr_requests")) for path in schedulers(array)}
    assert lengths == {"64"}
    assert _persisted_lengths(array, tmp_path) == ["64"]


def test_a_length_that_is_set_by_hand_over_a_profile_is_what_is_persisted(
    tmp_path: Path, array: Array
) -> None:
    lengths = [path.with_name("nr_requests") for path in schedulers(array)]
    set_all(lengths, "100")
    applied = apply_values(array, {"scheduler": "bfq"}, tmp_path)
    set_all(lengths, "48")
    persist(applied, array, tmp_path, lambda _text: None)
    assert _persisted_lengths(array, tmp_path) == ["48"]


def test_a_queue_that_is_shorter_than_may_be_set_bars_no_profile(
    tmp_path: Path, array: Array
) -> None:
    """As that of a disk on USB."""
    applied = apply_values(array, {"scheduler": "bfq"}, tmp_path)
    set_all([path.with_name("nr_requests") for path in schedulers(array)], "2")
    persist(applied, array, tmp_path, lambda _text: None)
    assert _persisted_lengths(array, tmp_path) == []


@pytest.mark.parametrize("scheduler", ["none", "bfq"])
def test_lengths_that_differ_are_not_persisted_and_that_is_told(
    tmp_path: Path, array: Array, scheduler: str
) -> None:
    said: list[str] = []
    applied = apply_values(array, {"scheduler": scheduler}, tmp_path)
    fake_sysfs.write(schedulers(array)[0].with_name("nr_requests"), "50")
    persist(applied, array, tmp_path, said.append)
    assert _persisted_lengths(array, tmp_path) == []
    assert "have different lengths (50, " in " ".join(said)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_scratch_folder_that_is_gone_is_gone_from_what_is_applied(
    tmp_path: Path, array: Array, earlier: bool
) -> None:
    """Be there a record already: the folder is removed once that has been taken over."""
    if earlier:
        apply_values(array, {"stripe_cache_size": 512}, tmp_path)
    knobs = (by_name("scheduler"),)
    paths = journaled_paths(array, for_array(array, ALL))
    journal = new_journal(
        journal_path(tmp_path, array.uuid), array.uuid, array.device, paths, tmp_path
    )
    folder = tmp_path / ".autotune-0123456789abcdef"
    journal.scratch(folder)
    apply(array, knobs, {"scheduler": "bfq"}, journal)
    keep_applied(profile({"scheduler": "bfq"}), array, journal, tmp_path)
    journal.removed(folder)
    journal.release()
    assert Journal.load(applied_path(tmp_path, array.uuid)).record.scratch == []


def test_a_kill_once_a_second_profile_is_kept_leaves_it_in_force(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal, which says that it is over, is still there."""
    apply_values(array, {"stripe_cache_size": 512}, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        apply_values(array, {"stripe_cache_size": 2048}, tmp_path)
    path, cache = journal_path(tmp_path, array.uuid), array.md / "stripe_cache_size"
    assert path.exists()
    _, outcome = put_back(path, tmp_path)
    assert (outcome.restored, outcome.failed) == ([], [])
    assert not path.exists()
    assert sysfs.value(cache) == "2048"
    undo(array, tmp_path)
    assert sysfs.value(cache) == "256"


@pytest.mark.parametrize("kept", [False, True])
def test_a_kill_while_a_second_profile_is_kept_names_the_one_whose_values_are_in_force(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    apply_values(array, {"stripe_cache_size": 512}, tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(applied_module, "note" if kept else "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            apply_values(array, {"stripe_cache_size": 2048}, tmp_path)
    path = journal_path(tmp_path, array.uuid)
    if not kept:
        put_back(path, tmp_path)
    reads = sysfs.value(array.md / "stripe_cache_size")
    (found,) = active(array, tmp_path)
    assert {"stripe_cache_size": int(reads)} == found.profile.knobs
    assert reads == ("2048" if kept else "512")
    undo(array, tmp_path)
    assert sysfs.value(array.md / "stripe_cache_size") == "256"
    assert [each for each in (tmp_path / "applied").iterdir() if each.suffix != ".lock"] == []


def test_a_kill_before_a_first_profile_is_kept_leaves_no_record_of_it(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guardian puts the originals back, from the file that has the record's name by then."""
    path, cache = journal_path(tmp_path, array.uuid), array.md / "stripe_cache_size"
    opened: list[tuple[BinaryIO, bytes]] = []

    def killed(journal: Journal) -> None:
        assert journal.path == applied_path(tmp_path, array.uuid)
        journal.release()
        raise KeyboardInterrupt

    def opens(journal: Journal, place: Path, known_as: str) -> None:
        file = path.open("rb")
        opened.append((file, file.read()))
        keep(journal, place, known_as)

    keep = applied_module.keep
    monkeypatch.setattr(applied_module, "keep", opens)
    monkeypatch.setattr(Journal, "over", killed)
    with pytest.raises(KeyboardInterrupt):
        apply_values(array, {"stripe_cache_size": 512}, tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    journal = guardian._what_is_left(path, *opened[0], heartbeat.End.DEAD)
    assert journal is not None
    assert restore(journal, tmp_path).complete
    assert sysfs.value(cache) == "256"
    assert not applied_path(tmp_path, array.uuid).exists()
    assert active(array, tmp_path) == []


@pytest.mark.parametrize("guardian_lives", [True, False])
def test_a_kill_once_settings_are_kept_leaves_no_scratch_file(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch, guardian_lives: bool
) -> None:
    """Its removal comes after that, and would be nobody's: the guardian does it, or `restore`."""
    path, mounted = journal_path(tmp_path, array.uuid), tmp_path / "mounted"
    scratch, theirs = mounted / ".autotune-0123456789abcdef", mounted / "theirs"
    for folder in (scratch, theirs):
        folder.mkdir(parents=True)
        (folder / "scratch").write_text("data")
    opened: list[tuple[BinaryIO, bytes]] = []

    def opens(journal: Journal, place: Path, known_as: str) -> None:
        journal.scratch(scratch)
        file = path.open("rb")
        opened.append((file, file.read()))
        keep(journal, place, known_as)
        journal.release()
        raise KeyboardInterrupt

    keep = applied_module.keep
    monkeypatch.setattr(applied_module, "keep", opens)
    with pytest.raises(KeyboardInterrupt):
        apply_values(array, {"stripe_cache_size": 512}, tmp_path)
    with opened[0][0]:
        if guardian_lives:
            assert guardian._what_is_left(path, *opened[0], heartbeat.End.DEAD) is None
        done = remove_kept_scratch_of_each(tmp_path)
    assert [each.removed for _, each in done.values()] == [[str(scratch)]] * (not guardian_lives)
    assert not scratch.exists()
    assert (theirs / "scratch").exists()
    assert sysfs.value(array.md / "stripe_cache_size") == "512"
    assert not Journal.load(applied_path(tmp_path, array.uuid)).record.scratch
    undo(array, tmp_path)
    assert sysfs.value(array.md / "stripe_cache_size") == "256"
