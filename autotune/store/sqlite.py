"""All that is SQLite's own: how it is opened and looked at, and what its errors mean to a user. It
imports SQLAlchemy only where that is needed: that takes longer than most commands do."""

import errno
import sqlite3
import textwrap
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.errors import AutotuneError
from autotune.untrusted import NONSENSE, plain

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

DRIVER_ERRORS = (OSError, sqlite3.Error)
"""What may be raised beside SQLAlchemy's own errors."""

BUSY_TIMEOUT_S = 30
_FULL = "The disk that holds the store {where} is full; free some space on it, or {elsewhere}."
_READ_ONLY = "The store {where} cannot be written; make its folder writable, or {elsewhere}."
_DAMAGED = (
    "The store {where} is damaged ({cause}); put a backup in its place, move it away to start "
    "with an empty one, or {elsewhere}."
)
_BUSY = (
    "The store {where} was held by another program for {seconds} s; end that program and try again."
)
_OTHER = "The store {where} cannot be used ({cause}); check its disk and folder, or {elsewhere}."
_BY_ERRNO = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
}
_BY_CODE = {
    sqlite3.SQLITE_FULL: _FULL,
    # SQLite's shared memory is a file beside the database.
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
}


def engine(where: Path) -> "Engine":
    """What connects to a store: each transaction outlives a power cut."""
    from sqlalchemy import create_engine, event  # noqa: PLC0415

    found = create_engine(_url(where), connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(found, "connect", _configure)
    return found


def _configure(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def migrating_engine(where: Path) -> "Engine":
    """Likewise to change its tables, in a transaction that `begin` starts."""
    from sqlalchemy import NullPool, create_engine  # noqa: PLC0415

    # Without a transaction that is begun by hand, Python's sqlite3 commits each CREATE and ALTER
    # by itself. And no foreign keys here: to replace a table would delete what refers to it.
    args = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    return create_engine(_url(where), poolclass=NullPool, connect_args=args)


MIGRATION_BEGINS = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "BEGIN IMMEDIATE")
"""The statements that start such a transaction."""


def _url(where: Path) -> "URL":
    from sqlalchemy import URL  # noqa: PLC0415

    return URL.create("sqlite", database=str(where))


def look(where: Path) -> tuple[set[str], list[str]]:
    """The names of the tables and indexes, and Alembic's revisions. Raise AutotuneError if the file
    is damaged, sqlite3.Error if it cannot be read."""
    # mode=rw: after a crash SQLite may have to recover the file before it can be read.
    uri = f"{where.absolute().as_uri()}?mode=rw"
    log = where.with_name(where.name + "-wal")
    recovers = log.exists() and log.stat().st_size > 0
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as connection:
        # SQLite takes what lacks of the last page for zeros.
        page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
        if where.stat().st_size % page_bytes and not recovers:
            raise damaged(where, "its end is missing")
        fault = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if fault != "ok":
            raise damaged(where, fault)
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "alembic_version" not in names:
            return names, []
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return names, [row[0] for row in rows]


def failure(where: Path, error: Exception) -> AutotuneError:
    """What went wrong with the store in the file `where`: an error of the operating system, of
    SQLite, of SQLAlchemy around one of SQLite, or a value that makes no sense."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return _error(_BY_ERRNO.get(cause.errno or 0, _OTHER), where, cause.strerror or str(cause))
    if isinstance(error, NONSENSE):
        return damaged(where, plain(str(error)))
    if str(cause).startswith("Could not decode to UTF-8"):
        # Python's own, which has no code, and quotes the whole text.
        return damaged(where, "a text is not UTF-8")
    # The low byte is the kind of error, the rest says more of how it came about.
    code = getattr(cause, "sqlite_errorcode", None) or 0
    sentence = _BY_CODE.get(code) or _BY_CODE.get(code & 0xFF, _OTHER)
    return _error(sentence, where, str(cause))


def damaged(where: Path, cause: str) -> AutotuneError:
    """What is in the file cannot be understood."""
    return _error(_DAMAGED, where, cause)


def _error(sentence: str, where: Path, cause: str) -> AutotuneError:
    return AutotuneError(
        sentence.format(
            where=where,
            cause=textwrap.shorten(cause, 200, placeholder=" …"),
            seconds=BUSY_TIMEOUT_S,
            elsewhere="choose another folder with --state-dir",
        )
    )
