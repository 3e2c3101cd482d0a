"""Stores that another version of autotune made."""

import shutil
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import NullPool, create_engine
from store_records import record

from autotune.errors import AutotuneError, RefusalError
from autotune.store import migrations, opening
from autotune.store.database import Store
from autotune.store.models import Base
from autotune.store.opening import FILE_NAME

ROOT = Path(__file__).parents[3]

BEFORE_MIGRATIONS = """
PRAGMA journal_mode = WAL;
CREATE TABLE runs (
    id INTEGER NOT NULL, uuid VARCHAR(64) NOT NULL, device VARCHAR(64) NOT NULL,
    fingerprint VARCHAR NOT NULL, started DATETIME NOT NULL, ended DATETIME,
    state VARCHAR(16) NOT NULL, outcome VARCHAR NOT NULL, problem JSON NOT NULL, profile JSON,
    PRIMARY KEY (id)
);
CREATE INDEX ix_runs_uuid ON runs (uuid);
CREATE TABLE trials (
    id INTEGER NOT NULL, run_id INTEGER NOT NULL, number INTEGER NOT NULL,
    role VARCHAR(16) NOT NULL, started DATETIME NOT NULL, seconds DOUBLE NOT NULL,
    status VARCHAR(16) NOT NULL, reason VARCHAR NOT NULL, requested JSON NOT NULL,
    effective JSON NOT NULL, figures JSON NOT NULL, measured JSON NOT NULL,
    bytes_written INTEGER NOT NULL,
    PRIMARY KEY (id), UNIQUE (run_id, number), FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE INDEX ix_trials_run_id ON trials (run_id);
INSERT INTO runs VALUES (
    3, 'abc', '/dev/md0', 'print', '2026-01-01 00:00:00.000000', '2026-01-01 00:30:00.000000',
    'done', 'better', '{"seed": 1}', '{"name": "p"}'
);
INSERT INTO trials VALUES (
    9, 3, 1, 'search', '2026-01-01 00:01:00.000000', 13.5, 'aborted', 'reason 1',
    '{"stripe_cache_size": 257, "scheduler": "bfq"}',
    '{"stripe_cache_size": 256, "scheduler": "bfq"}',
    '{"read-0.throughput": [1e8, 0], "write-0.throughput": [1e8, 0],
      "resync-0.throughput": [1e8, 0]}',
    '["read", "write"]', 1099511627776
);
"""

MORE = """
import sqlalchemy as sa
from alembic import op

revision = "more"
down_revision = "{head}"


def upgrade() -> None:
    with op.batch_alter_table("runs", recreate="always") as runs:
        runs.add_column(sa.Column("note", sa.String, nullable=False, server_default="none"))
    op.execute("UPDATE runs SET note = 'migrated'")
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The file of a store as they were before there were migrations."""
    file = tmp_path / FILE_NAME
    connection = sqlite3.connect(file)
    connection.executescript(BEFORE_MIGRATIONS)
    connection.close()
    return file


def with_more(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """As if this autotune had one more migration."""
    shutil.copytree(migrations.FOLDER, folder)
    (folder / "versions/more.py").write_text(source.format(head=opening.HEAD))
    monkeypatch.setattr(migrations, "FOLDER", folder)
    monkeypatch.setattr(opening, "HEAD", "more")


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_the_head_is_the_newest_migration() -> None:
    assert migrations.known_revisions()[0] == opening.HEAD


def test_the_migrations_make_the_models(tmp_path: Path) -> None:
    Store(tmp_path)
    where = f"sqlite:///{tmp_path / FILE_NAME}"
    with create_engine(where, poolclass=NullPool).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_tables_are_those_of_before(tmp_path: Path, old: Path) -> None:
    """Constraints without a name, which a comparison of metadata leaves out, among them."""
    Store(tmp_path / "new")
    Store(old.parent)
    query = "SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name <> 'alembic_version'"
    new = rows(tmp_path / "new" / FILE_NAME, query)
    as_words = [
        sorted(str(sql).replace("(", " ( ").replace(")", " ) ").split() for (sql,) in found)
        for found in (new, rows(old, query))
    ]
    assert as_words[0] == as_words[1]


def test_a_store_from_before_there_were_migrations_keeps_its_runs(old: Path) -> None:
    store = Store(old.parent)
    (run,) = store.runs()
    assert (run.id, run.state, run.problem, run.profile) == (3, "done", {"seed": 1}, {"name": "p"})
    assert store.trials(3) == [record(1)]
    store.add_trial(3, record(2))
    assert store.start_run("abc", "/dev/md0", "print", {}) == 4
    assert Store(old.parent).trials(3) == [record(1), record(2)]


@pytest.mark.parametrize("versioned", [True, False])
def test_an_older_store_is_brought_up_to_date_with_all_its_trials(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch, versioned: bool
) -> None:
    if versioned:
        old.unlink()
        Store(tmp_path).start_run("abc", "/dev/md0", "print", {})
        Store(tmp_path).add_trial(1, record(1))
    with_more(tmp_path / "100 % more", monkeypatch, MORE)
    (run,) = Store(tmp_path).runs()
    assert rows(old, "SELECT note FROM runs") == [("migrated",)]
    assert rows(old, "SELECT version_num FROM alembic_version") == [("more",)]
    assert Store(tmp_path).trials(run.id) == [record(1)]


def test_a_migration_that_fails_half_way_changes_nothing(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = old.read_bytes()
    failing = MORE + '    op.execute("INSERT INTO nowhere VALUES (1)")\n'
    with_more(tmp_path / "more", monkeypatch, failing)
    with pytest.raises(AutotuneError, match="no such table: nowhere"):
        Store(tmp_path)
    assert old.read_bytes() == before


def test_a_store_of_a_newer_autotune_is_refused_and_left_as_it_is(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        with_more(tmp_path / "more", newer, MORE)
        Store(tmp_path)
    connection = sqlite3.connect(old)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    old.chmod(0o640)
    before = old.read_bytes()
    with pytest.raises(RefusalError, match="was made by a newer autotune; upgrade this one, or"):
        Store(tmp_path)
    assert old.read_bytes() == before
    assert old.stat().st_mode & 0o777 == 0o640
    # Beside it lies only what keeps two processes from migrating at once.
    assert {f.name for f in tmp_path.iterdir() if f.is_file()} == {FILE_NAME, f"{FILE_NAME}.lock"}


OPENED_TOGETHER = """
import os, pathlib, sys
from autotune.store import migrations, opening
from autotune.store.database import Store

migrations.FOLDER, opening.HEAD = pathlib.Path(sys.argv[2]), sys.argv[3]
reading, writing = os.pipe()
pids = []
for _ in range(8):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.close(writing)
        os.read(reading, 1)
        Store(pathlib.Path(sys.argv[1])).start_run("abc", "/dev/md0", "print", {})
        os._exit(0)
os.close(writing)
print(sum(os.waitpid(pid, 0)[1] == 0 for pid in pids))
"""


def opened_together(folder: Path) -> int:
    """How many of eight processes could open a store at once and start a run in it."""
    words = (sys.executable, "-c", OPENED_TOGETHER, folder, migrations.FOLDER, opening.HEAD)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not done.stderr
    return int(done.stdout)


def test_runs_that_start_together_make_one_store(tmp_path: Path) -> None:
    assert opened_together(tmp_path) == 8
    assert len(Store(tmp_path).runs()) == 8


def test_runs_that_start_together_migrate_once(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = MORE + '    op.execute("CREATE TABLE once (number INTEGER)")\n'
    with_more(tmp_path / "more", monkeypatch, once)
    assert opened_together(tmp_path) == 8
    assert len(rows(old, "SELECT note FROM runs")) == 9


def test_every_package_is_shipped() -> None:
    """Alembic finds its files by their folder, so nothing else would miss them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {file.parent.relative_to(ROOT) for file in (ROOT / "autotune").rglob("*.py")}
    assert {".".join(folder.parts) for folder in folders} <= set(settings["packages"])
