"""The store on a disk that is full or read-only: one sentence, and nothing is lost."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from small_disk import fill, free, make_read_only, small_disk
from store_records import filled, record

from autotune.errors import AutotuneError
from autotune.store import TrialRecord
from autotune.store.database import Store


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as where:
        yield where


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A store that no process has open."""
    return filled(tmp_path)


def large(number: int) -> TrialRecord:
    return record(number, size=100)


def add_for_ever(store: Store, run: int, added: list[TrialRecord]) -> None:
    for trial in map(large, count(1)):
        store.add_trial(run, trial)
        added.append(trial)


def test_a_store_that_cannot_be_made_for_want_of_space_is_made_when_there_is_some(
    disk: Path,
) -> None:
    said = []
    for leave_kib in range(0, 128, 4):
        folder = disk / str(leave_kib)
        folder.mkdir()
        fill(disk, leave_kib)
        try:
            Store(folder).start_run("abc", "/dev/md0", "print", {})
        except AutotuneError as error:
            said.append(str(error))
        free(disk)
        Store(folder).start_run("abc", "/dev/md0", "print", {})
        for file in folder.iterdir():
            file.unlink()
    assert 1 < len(said) < 32
    assert all("is full" in text for text in said)


def test_a_run_does_not_start_on_a_full_disk(disk: Path, closed: Path) -> None:
    shutil.copy(closed, disk)
    fill(disk)
    with pytest.raises(AutotuneError, match="is full"):
        Store(disk).start_run("abc", "/dev/md0", "print", {})
    free(disk)
    assert [found.id for found in Store(disk).runs()] == [1]


def test_what_was_stored_before_the_disk_was_full_is_whole(disk: Path) -> None:
    store = Store(disk)
    run = store.start_run("abc", "/dev/md0", "print", {})
    kept: list[TrialRecord] = []
    with pytest.raises(AutotuneError, match="is full"):
        add_for_ever(store, run, kept)
    assert len(kept) > 10
    trial = large(len(kept) + 1)
    with pytest.raises(AutotuneError, match="is full"):
        store.add_trial(run, trial)
    assert store.trials(run) == kept
    subprocess.run(("mount", "-o", "remount,size=2m", disk), check=True)
    assert Store(disk).trials(run) == kept
    store.add_trial(run, trial)
    store.finish_run(run, "done", "better")
    assert Store(disk).trials(run) == [*kept, trial]


@pytest.mark.parametrize("made", [True, False])
def test_a_read_only_folder_is_refused_at_once(disk: Path, closed: Path, made: bool) -> None:
    if made:
        shutil.copy(closed, disk)
    make_read_only(disk)
    with pytest.raises(AutotuneError, match="cannot be written; make its folder writable"):
        Store(disk).start_run("abc", "/dev/md0", "print", {})


def test_a_command_says_it_in_one_line(disk: Path, closed: Path) -> None:
    shutil.copy(closed, disk)
    make_read_only(disk)
    words = (sys.executable, "-m", "autotune", "history", "--state-dir", str(disk))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"autotune: The store {disk}/autotune.db cannot be written; make its folder writable, "
        "or choose another folder with --state-dir.\n"
    )
