"""A store that is damaged, somebody else's, or was left by a process that was killed."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from store_records import filled, record

from autotune.errors import AutotuneError, RefusalError
from autotune.store.database import FILE_NAME, Store

KILLS = 30
PAGE_BYTES = 4096


def refused(file: Path) -> str:
    """What opening the store says; it leaves the file as it is."""
    before = file.read_bytes()
    with pytest.raises(AutotuneError) as caught:
        Store(file.parent)
    assert file.read_bytes() == before
    assert str(file) in str(caught.value)
    assert str(caught.value).endswith("choose another folder with --state-dir.")
    return str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"not a database, but long enough to be looked at" * 100,
        b"short",
        b"SQLite format 3\0" + b"z" * 5000,
        random.Random(1).randbytes(100_000),
    ],
)
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / FILE_NAME
    file.write_bytes(content)
    assert "is damaged" in refused(file)


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.1, 0.5, 0.9, 0.96])
def test_a_database_that_was_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    file = filled(tmp_path)
    os.truncate(file, int(file.stat().st_size * share))
    assert "is damaged" in refused(file)


def test_garbage_in_a_database_is_refused_or_not_seen_but_never_a_traceback(
    tmp_path: Path,
) -> None:
    file = filled(tmp_path)
    whole = file.read_bytes()
    rng, said = random.Random(1), []
    for _ in range(60):
        at, length = rng.randrange(len(whole)), rng.choice((8, 200, PAGE_BYTES))
        file.write_bytes((whole[:at] + rng.randbytes(length) + whole[at + length :])[: len(whole)])
        try:
            store = Store(tmp_path)
            for run in store.runs():
                store.trials(run.id)
        except AutotuneError as error:
            said.append(str(error))
    assert len(said) > 20
    assert not [text for text in said if "is damaged" not in text or "\n" in text]


@pytest.mark.parametrize(
    "change",
    [
        "figures = '{\"read.throughput\": [1'",
        "figures = '[1, 2]'",
        "figures = '{\"read.throughput\": 5}'",
        "requested = x'ff'",
        "status = 'splendid'",
        "started = 'yesterday'",
        "measured = 7",
        "number = 'two'",
        "role = x'ff'",
        "seconds = 'long'",
        "figures = '{\"read.throughput\": [1e8, Infinity]}'",
        "figures = '{\"read.throughput\": [-1, 0]}'",
        "requested = '{\"scheduler\": null}'",
        "courses = '[1]'",
        "courses = '{\"read\": 1}'",
    ],
)
def test_a_trial_that_makes_no_sense_is_damage(tmp_path: Path, change: str) -> None:
    file = filled(tmp_path)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE trials SET {change} WHERE number = 2")
    store = Store(tmp_path)
    with pytest.raises(AutotuneError, match="is damaged"):
        store.courses(store.trials(1)[0].number)


@pytest.mark.parametrize("change", ["problem = '7'", "profile = '[1]'", "outcome = x'ff'"])
def test_a_run_that_makes_no_sense_is_damage(tmp_path: Path, change: str) -> None:
    file = filled(tmp_path)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE runs SET {change}")
    with pytest.raises(AutotuneError, match="is damaged"):
        Store(tmp_path).runs()


def test_texts_come_out_of_a_store_without_control_characters(tmp_path: Path) -> None:
    """Whoever wrote them: they are shown on root's terminal."""
    file, nasty = filled(tmp_path, 1, 1), "a\x1b[2J"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET outcome = ?, device = ?", (nasty, nasty))
        setting = json.dumps({nasty: nasty})
        changes = "reason = ?, role = ?, requested = ?, figures = ?, measured = ?"
        figures, measured = json.dumps({nasty: [1, 0]}), json.dumps([nasty])
        connection.execute(
            f"UPDATE trials SET {changes}", (nasty, nasty, setting, figures, measured)
        )
    store = Store(tmp_path)
    for shown in (store.run(1), *store.trials(1)):
        assert "a?[2J" in str(shown)
        assert "x1b" not in str(shown)


def test_a_damaged_store_that_was_moved_away_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its log may still lie there, and must not be taken for the new one's."""
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {})
    store.add_trial(run, record(1))
    assert (tmp_path / f"{FILE_NAME}-wal").stat().st_size
    (tmp_path / FILE_NAME).rename(tmp_path / "away")
    assert Store(tmp_path).runs() == []


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert "something else than autotune's runs" in refused(file)
    with pytest.raises(RefusalError):
        Store(tmp_path)


KILLED = """
import os, pathlib, random, signal, sys, time
from store_records import record
from autotune.store.database import Store

folder, kills, rng = pathlib.Path(sys.argv[1]), int(sys.argv[2]), random.Random(7)
Store(folder)
for _ in range(kills):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        store = Store(folder)
        run = store.start_run("abc", "/dev/md0", "print", {})
        for number in range(1, 10000):
            store.add_trial(run, record(number, 40))
            os.write(writing, b".")
        os._exit(0)
    os.read(reading, 1)
    time.sleep(rng.uniform(0, 0.03))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(writing)
    stored = 1
    while got := os.read(reading, 1 << 16):
        stored += len(got)
    os.close(reading)
    print(stored)
"""


def test_after_kill_9_every_trial_that_was_stored_is_there_and_whole(tmp_path: Path) -> None:
    words = (sys.executable, "-c", KILLED, str(tmp_path), str(KILLS))
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    promised = [int(line) for line in done.stdout.split()]
    assert len(promised) == KILLS, done.stderr
    store = Store(tmp_path)
    for run, stored in enumerate(promised, start=1):
        trials = store.trials(run)
        assert trials == [record(number, 40) for number in range(1, len(trials) + 1)]
        # The one under way may have got there before it could be told of.
        assert len(trials) - stored in (0, 1)
    assert sum(promised) > 2 * KILLS
