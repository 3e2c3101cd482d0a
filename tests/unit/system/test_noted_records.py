"""Where records lie is noted, wherever the filesystem of their state folder has gone."""

import errno
import os
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from journal_files import Files, files

from autotune.errors import AutotuneError, RefusalError
from autotune.safety import new_journal
from autotune.safety.handed_over import keep, let_wait
from autotune.safety.journal import Journal
from autotune.safety.locks import lock
from autotune.safety.other_folders import left_elsewhere
from autotune.safety.paths import applied_path, journal_path, waiting_path
from autotune.safety.restore import restore
from autotune.system import noted_records
from autotune.system.array import Array, find_array
from autotune.system.noted_records import (
    NOTES,
    forget,
    forget_removed,
    note,
    out_of_reach,
    removed,
    told_removed,
)

__all__ = ["files"]
UUID = "0a0b0c0d000000000000000000000001"


@pytest.fixture
def array(tmp_path: Path) -> Array:
    fake_sysfs.raid6(tmp_path)
    return find_array("md0", tmp_path)


def noted(record: Path, root: Path, away: bool = False) -> Path:
    """Note a record that is not there any more; `away`: as if on a filesystem that is not."""
    record.parent.mkdir(parents=True, exist_ok=True)
    record.touch()
    note(record, root)
    path = root / NOTES.relative_to("/") / f"{record.parent.name}-{record.stem}"
    if away:
        path.write_text(on_another(record))
    record.unlink()
    return path


def on_another(record: Path) -> str:
    folders = (f"1 2 3 {folder}" for folder in record.parents)
    return "\n".join([str(record), *folders, ""])


def test_a_record_whose_filesystem_is_gone_is_told_and_one_that_was_removed_is_not(
    tmp_path: Path,
) -> None:
    record = applied_path(tmp_path / "away", UUID)
    noted(record, tmp_path)
    assert out_of_reach(tmp_path) == {}, "somebody has removed it"
    path = noted(record, tmp_path, away=True)
    record.parent.rmdir()
    assert out_of_reach(tmp_path) == {path: record}
    forget(applied_path(tmp_path / "other", UUID), tmp_path)
    assert out_of_reach(tmp_path) == {path: record}
    record.parent.mkdir()
    record.touch()
    assert out_of_reach(tmp_path) == {}, "mounted again, perhaps under another number"
    record.unlink()
    forget(record, tmp_path)
    assert out_of_reach(tmp_path) == {}


def test_of_what_was_removed_it_is_told_what_it_was(tmp_path: Path) -> None:
    applied, journal = applied_path(tmp_path / "a", UUID), journal_path(tmp_path / "b", UUID)
    for record in (applied, journal):
        noted(record, tmp_path)
        shutil.rmtree(record.parents[1])
    assert set(removed(tmp_path).values()) == {applied, journal}
    assert told_removed(applied, "/dev/md0").startswith("What was applied to /dev/md0 was")
    assert told_removed(journal, "/dev/md0").startswith("What a killed run has set on /dev/md0 was")


def test_a_record_under_another_mount_is_told(tmp_path: Path) -> None:
    """Which may have the same number, as disks that are changed each week."""
    record = applied_path(tmp_path / "state", UUID)
    path = noted(record, tmp_path)
    record.parents[1].rename(tmp_path / "under")
    record.parent.mkdir(parents=True)
    assert out_of_reach(tmp_path) == {path: record}


@pytest.mark.parametrize("away", [True, False])
def test_a_note_is_replaced_by_one_of_another_folder_only_if_its_record_is_gone(
    tmp_path: Path, away: bool
) -> None:
    path = noted(applied_path(tmp_path / "first", UUID), tmp_path, away=away)
    noted(applied_path(tmp_path / "second", UUID), tmp_path)
    assert ("first" if away else "second") in path.read_text().splitlines()[0]


def test_a_state_folder_that_somebody_has_removed_is_not_out_of_reach(tmp_path: Path) -> None:
    record = applied_path(tmp_path / "its own/state", UUID)
    path = noted(record, tmp_path)
    shutil.rmtree(tmp_path / "its own")
    assert out_of_reach(tmp_path) == {}
    assert removed(tmp_path) == {path: record}
    # As where a stick's folder below /media is gone with it.
    name, first, *above = path.read_text().split("\n")
    path.write_text("\n".join([name, f"9{first}", *above]))
    assert out_of_reach(tmp_path) == {path: record}
    assert removed(tmp_path) == {}


def test_what_is_undone_where_its_filesystem_is_mounted_now_is_forgotten(tmp_path: Path) -> None:
    record = applied_path(tmp_path / "state", UUID)
    path = noted(record, tmp_path)
    record.parents[1].rename(tmp_path / "now")
    forget(applied_path(tmp_path / "now", UUID), tmp_path)
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/s/u.jsonl",
        "/s/u.jsonl\n",
        "/s/u.jsonl\n1 2 3 /s\n",
        "/s/u.jsonl\n1 2 3 /s\n1 2 3",
        "1\n/s\n/s/u.jsonl\n",
    ],
)
def test_a_note_that_is_damaged_says_nothing(tmp_path: Path, text: str) -> None:
    path = noted(applied_path(tmp_path / "away", UUID), tmp_path, away=True)
    path.write_text(text)
    assert out_of_reach(tmp_path) == {}


def test_a_journal_that_cannot_be_noted_is_none(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """udev would set what is persisted in the middle of the run. Nor does half a note stay, which
    would keep udev from the array from then on."""
    notes = files.root / NOTES.relative_to("/")
    notes.parent.mkdir(parents=True)
    notes.write_text("no folder")
    with pytest.raises(AutotuneError, match=r"records cannot be written .* nothing was changed"):
        files.open()
    notes.unlink()

    def full(path: Path, _text: str, errors: str) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(AutotuneError, match=r"No space left on device\), so nothing was"):
            files.open()
    assert not files.path.exists()
    assert not list(notes.iterdir())
    files.open()
    assert [path.name for path in notes.iterdir()] == [f"journal-{files.path.stem}"]


def test_a_journal_is_noted_before_it_says_anything(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or udev could set something between what is read and what is noted."""
    seen = list[bytes]()

    def see(_record: Path, _root: Path) -> None:
        seen.append(files.path.read_bytes())

    monkeypatch.setattr(new_journal, "note", see)
    files.open()
    assert seen == [b""]


def test_a_journal_that_somebody_has_removed_keeps_udev_from_nothing_any_more(
    files: Files,
) -> None:
    """Once `restore` was called, which tells udev."""
    files.open().release()
    note_ = files.root / NOTES.relative_to("/") / f"journal-{files.path.stem}"
    state = files.path.parents[1]
    assert forget_removed(state, files.root) == []
    files.path.unlink()
    assert forget_removed(state / "other", files.root) == []
    assert note_.exists()
    assert forget_removed(state, files.root) == [files.path.stem]
    assert not note_.exists()


@pytest.mark.parametrize("end", ["close", "keep", "wait", "left"])
def test_a_note_is_there_as_long_as_its_record(
    files: Files, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    notes = files.root / "notes"
    monkeypatch.setattr(noted_records, "NOTES", notes)
    journal = files.open()
    note(journal.path)
    name = f"journal-{journal.path.stem}"
    assert [path.name for path in notes.iterdir()] == [name]
    match end:
        case "close":
            journal.close()
        case "keep":
            keep(journal, applied_path(files.path.parent.parent, "a"))
        case "wait":
            let_wait(journal)
    assert [path.name for path in notes.iterdir()] == [name] * (end == "left")


def test_what_is_applied_and_waits_for_a_sync_as_it_is_undone_is_not_noted_for_ever(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noted_records, "NOTES", files.root / "notes")
    files.open().release()
    path = applied_path(files.path.parent.parent, files.path.stem)
    path.parent.mkdir()
    files.path.replace(path)
    note(path)
    journal = Journal.claimed(path)
    let_wait(journal)
    assert journal.path == waiting_path(files.path)
    restore(journal, files.root)
    assert not list((files.root / "notes").iterdir())


@pytest.mark.parametrize("folder", ["away", "state"])
def test_nothing_is_applied_over_what_cannot_be_reached(
    array: Array, tmp_path: Path, folder: str
) -> None:
    """Nor with the same folder, which would be made anew on another filesystem."""
    record = applied_path(tmp_path / "away", array.uuid)
    path = noted(record, tmp_path, away=True)
    locks, journal = tmp_path / "locks", journal_path(tmp_path / folder, array.uuid)
    with (
        pytest.raises(
            RefusalError, match=f"autotune restore --all --state-dir {tmp_path / 'away'}"
        ),
        lock(array, journal, locks, applies=True),
    ):
        pass
    # What puts back what it finds does not take it for anything else.
    with lock(array, journal, locks):
        pass
    path.unlink()
    with lock(array, journal, locks, applies=True):
        pass


def on_the_same_disks(root: Path) -> Array:
    """Another array than that of a machine."""
    other = root / "other"
    fake_sysfs.raid6(other)
    (other / "sys/block/md0/md/uuid").write_text("00000000-00000000-00000000-00000001\n")
    (other / "run").symlink_to(root / "run")
    return find_array("md0", other)


def test_what_is_applied_and_cannot_be_reached_bars_profiles_on_its_disks(
    array: Array, tmp_path: Path
) -> None:
    locks, away = tmp_path / "locks", journal_path(tmp_path / "away", array.uuid)
    with lock(array, away, locks, applies=True):
        pass
    noted(applied_path(tmp_path / "away", array.uuid), tmp_path, away=True)
    beside = on_the_same_disks(tmp_path)
    own = journal_path(tmp_path / "state", beside.uuid)
    with (
        pytest.raises(RefusalError, match="is not mounted"),
        lock(beside, own, locks, applies=True),
    ):
        pass
    with lock(beside, own, locks):
        pass


def test_a_folder_that_one_command_cannot_see_is_forgotten_for_none(
    array: Array, tmp_path: Path
) -> None:
    """As a unit with a /tmp of its own."""
    locks, away = tmp_path / "locks", journal_path(tmp_path / "its/at", array.uuid)
    with lock(array, away, locks, applies=True):
        pass
    noted(applied_path(tmp_path / "its/at", array.uuid), tmp_path)
    (tmp_path / "its").rename(tmp_path / "seen by others")
    (tmp_path / "its").mkdir()
    with lock(array, journal_path(tmp_path / "state", array.uuid), locks):
        pass
    for name in (f"array-{array.uuid}", *(f"disk-{disk}" for disk in array.leaves)):
        assert str(away) in (locks / name).read_text()


def test_a_run_whose_state_folder_went_meanwhile_leaves_no_note(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has put everything back from memory."""
    monkeypatch.setattr(noted_records, "NOTES", files.root / "notes")
    journal = files.open()
    note(journal.path)
    files.path.parent.rename(files.root / "unmounted")
    restore(journal, files.root)
    assert not list((files.root / "notes").iterdir())


def test_a_filesystem_that_fails_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a network's whose server is gone."""
    record = applied_path(tmp_path / "away", UUID)
    path = noted(record, tmp_path, away=True)

    true_stat = Path.stat

    def stale(self: Path, **_: object) -> os.stat_result:
        if self.is_relative_to(tmp_path / "away"):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(self))
        return true_stat(self)

    monkeypatch.setattr(Path, "stat", stale)
    assert out_of_reach(tmp_path) == {path: record}


def test_a_killed_run_whose_journal_cannot_be_reached_bars_runs_on_its_disks(
    array: Array, tmp_path: Path
) -> None:
    locks, own = tmp_path / "locks", journal_path(tmp_path / "state", array.uuid)
    away = journal_path(tmp_path / "away", array.uuid)
    with lock(array, away, locks):
        pass
    noted(away, tmp_path, away=True)
    beside = on_the_same_disks(tmp_path)
    for each, journal in ((array, own), (beside, journal_path(tmp_path / "state", beside.uuid))):
        for _ in range(2):
            with pytest.raises(RefusalError, match="is not mounted"), lock(each, journal, locks):
                pass


def test_what_cannot_be_reached_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted_records, "NOTES", tmp_path / "notes")
    record = applied_path(tmp_path / "away", UUID)
    record.parent.mkdir(parents=True)
    record.touch()
    note(record)
    assert left_elsewhere(Path("/other"), tmp_path / "memory") == []
    (tmp_path / "notes" / f"applied-{UUID}").write_text(on_another(record))
    record.unlink()
    (text,) = left_elsewhere(Path("/other"), tmp_path / "memory")
    assert UUID in text
    assert f"--state-dir {tmp_path / 'away'}" in text
