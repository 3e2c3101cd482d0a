"""The store: whole trials, in order, and errors that say what to do."""

import fcntl
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from store_records import record

from autotune.errors import AutotuneError, UsageError
from autotune.problem.course import Course
from autotune.store import sqlite
from autotune.store.database import Store
from autotune.store.opening import FILE_NAME


def test_what_is_stored_comes_back_from_another_process(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {"seed": 1})
    trials = [record(1), record(2)]
    for trial in trials:
        store.add_trial(run, trial)
    store.finish_run(run, "done", "better", {"name": "p"})
    again = Store(tmp_path)
    assert again.trials(run) == trials
    (found,) = again.runs("abc")
    assert (found.state, found.outcome, found.trials) == ("done", "better", 2)
    assert found.ended is not None
    assert again.runs("other") == []


def test_a_trial_is_stored_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {})
    store.add_trial(run, record(1))
    with pytest.raises(AutotuneError):
        store.add_trial(run, record(1))
    assert len(store.trials(run)) == 1


def test_an_unknown_run_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="autotune history"):
        Store(tmp_path).trials(7)


def test_looking_makes_no_store(tmp_path: Path) -> None:
    assert Store.existing(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_the_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.start_run("abc", "/dev/md0", "print", {})
    files = list(tmp_path.iterdir())
    assert {file.name for file in files} > {FILE_NAME, f"{FILE_NAME}-wal"}
    assert not any(file.stat().st_mode & 0o077 for file in files)


def test_a_folder_of_any_name_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "a b?c=d#e%20f%(g)s;{h}"
    run = Store(folder).start_run("abc", "/dev/md0", "print", {})
    assert [found.id for found in Store(folder).runs()] == [run]
    assert [file.name for file in tmp_path.iterdir()] == [folder.name]


def test_a_store_that_another_program_holds_is_said_to_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.05)
    store = Store(tmp_path)
    other = sqlite3.connect(tmp_path / FILE_NAME)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(AutotuneError, match="held by another program"):
        store.start_run("abc", "/dev/md0", "print", {})
    other.close()
    store.start_run("abc", "/dev/md0", "print", {})


@pytest.mark.parametrize(
    ("source", "loads"),
    [
        ("import autotune.tuning.run, autotune.report.live, autotune.cli.run", "[]"),
        ("from autotune.store.database import Store; Store(folder).runs()", "['sqlalchemy']"),
    ],
)
def test_only_what_needs_the_database_loads_it(tmp_path: Path, source: str, loads: str) -> None:
    """And a store that is up to date does not load Alembic."""
    Store(tmp_path)
    source = (
        f"import sys, pathlib; folder = pathlib.Path(sys.argv[1]); {source}; "
        "print([m for m in ('sqlalchemy', 'alembic') if m in sys.modules])"
    )
    words = (sys.executable, "-c", source, str(tmp_path))
    loaded = subprocess.run(words, capture_output=True, text=True, check=False)
    assert loaded.stdout.strip() == loads, loaded.stderr


def test_old_runs_are_thinned_and_other_arrays_are_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for uuid in ["abc"] * 5 + ["other"]:
        store.add_trial(store.start_run(uuid, "/dev/md0", "print", {}), record(1))
    store.thin("abc", whole=2, runs=4)
    assert [(run.id, run.trials) for run in store.runs()] == [
        (6, 1),
        (5, 1),
        (4, 1),
        (3, 0),
        (2, 0),
    ]


def test_a_store_that_is_thinned_does_not_grow_without_bound(tmp_path: Path) -> None:
    store, sizes = Store(tmp_path), []
    for number in range(1, 121):
        run = store.start_run("abc", "/dev/md0", "print", {"seed": number})
        for trial in (record(1, 20), record(2, 20)):
            store.add_trial(run, trial)
        store.thin("abc", whole=5, runs=20)
        if number in (40, 120):
            with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
                sizes += connection.execute("PRAGMA page_count").fetchone()
    assert sizes[1] <= 1.1 * sizes[0]
    kept = store.runs("abc")
    assert [found.id for found in kept] == list(range(120, 100, -1))
    assert [bool(store.trials(found.id)) for found in kept] == [True] * 5 + [False] * 15


def test_thinning_leaves_other_arrays_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = store.start_run("other", "/dev/md1", "print", {})
    store.add_trial(other, record(1))
    store.start_run("abc", "/dev/md0", "print", {})
    store.thin("abc", whole=0, runs=0)
    assert store.runs("abc") == []
    assert len(store.trials(other)) == 1


def test_whoever_may_open_the_folder_cannot_keep_a_store_from_being_used(tmp_path: Path) -> None:
    # Another process, since a lock is its opener's.
    opened = subprocess.Popen(["flock", tmp_path, "cat"], stdin=subprocess.PIPE)
    try:
        while _can_be_locked(tmp_path):
            assert opened.poll() is None
        script = (
            "import sys; from pathlib import Path; from autotune.store.database import Store; "
            "Store(Path(sys.argv[1]))"
        )
        subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=60)
        assert not [path for path in tmp_path.iterdir() if path.stat().st_mode & 0o077]
    finally:
        opened.communicate()


def _can_be_locked(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_what_phases_showed_second_by_second_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {})
    course = Course((1.0, 1.01), (5e7, 6e7), (900, 0), (256, 300), {800: 3, 900: 1}, {})
    store.add_trial(run, record(1), {"write": course})
    store.add_trial(run, record(2))
    store.finish_run(run, "done", "better", None, {"adopt": True})
    again = Store(tmp_path)
    assert again.courses(run) == {1: {"write": course}}
    assert again.result(run) == {"adopt": True}
    assert again.trials(run) == [record(1), record(2)]


def test_a_course_that_is_not_whole_is_damage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {})
    store.add_trial(run, record(1), {"write": Course((1.0,), (5e7,))})
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute('UPDATE trials SET courses = \'{"write": {"seconds": [1.0]}}\'')
    with pytest.raises(AutotuneError, match=r"is damaged .*second by second is not whole"):
        Store(tmp_path).courses(run)
