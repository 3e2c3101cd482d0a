"""What the database's errors mean to a user: one sentence each, with what to do."""

import errno
import sqlite3
import textwrap
from pathlib import Path

from autotune.errors import AutotuneError

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
_OTHER = "The store {where} cannot be used ({cause}); see to its disk and folder, or {elsewhere}."
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


def failure(where: Path, error: Exception) -> AutotuneError:
    """What went wrong with the store in the file `where`: an error of the operating system, of
    SQLite, of SQLAlchemy around one of SQLite, or a value that makes no sense."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return _error(_BY_ERRNO.get(cause.errno or 0, _OTHER), where, cause.strerror or str(cause))
    if isinstance(error, ValueError | TypeError):
        return damaged(where, str(error))
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
