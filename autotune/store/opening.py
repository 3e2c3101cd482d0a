"""Before the store is used: is the file whole, and of this version? Without SQLAlchemy."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.durable import private_folder, refuse_others_link
from autotune.errors import AutotuneError, RefusalError
from autotune.store import sqlite

FILE_NAME = "autotune.db"
HEAD = "0002"
"""The newest of `migrations/versions`: an up-to-date store is known by it without Alembic, which
takes longer to import than to ask."""
UNVERSIONED = "0001"
"""What a store is that was made before there were migrations."""


def bring_up_to_date(where: Path) -> None:
    """Make the store if there is none, and bring an older one to this version; else change
    nothing.

    Raise RefusalError if a newer autotune or another program made it, AutotuneError if it is
    damaged, one of `sqlite.DRIVER_ERRORS` or SQLAlchemyError if it cannot be read or written.
    """
    private_folder(where.parent)
    refuse_others_link(where)
    with _alone(where):
        if not where.exists():
            os.close(os.open(where, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        revision = _known_revision(where)
        if revision == HEAD:
            return
        # Only a store that is new or older needs it.
        from autotune.store.migrations import migrate  # noqa: PLC0415

        migrate(where, revision)


def fault(state_dir: Path) -> str | None:
    """Why the store of a state folder cannot be used, if it is there and cannot; whatever it is, it
    is not brought up to date."""
    where = state_dir / FILE_NAME
    try:
        if where.exists():
            _known_revision(where)
    except sqlite.DRIVER_ERRORS as error:
        return str(sqlite.failure(where, error))
    except AutotuneError as error:
        return str(error)
    return None


@contextmanager
def _alone(where: Path) -> Iterator[None]:
    """One process at a time makes or migrates a store."""
    # Not the folder, which others may open, and so lock; nor the store, whose own locks the
    # database loses as soon as this process closes it (POSIX).
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(where.with_name(where.name + ".lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _revision(where: Path) -> str:
    """The revision of the tables, or "" if there are none."""
    names, revisions = sqlite.look(where)
    if not names:
        return ""
    if "alembic_version" in names:
        return ", ".join(revisions) or "none"
    if {"runs", "trials"} <= names:
        return UNVERSIONED
    raise RefusalError(
        f"The database {where} holds something else than autotune's runs; "
        "choose another folder with --state-dir."
    )


def _known_revision(where: Path) -> str:
    """Likewise; raise RefusalError if a newer autotune made the store."""
    revision = _revision(where)
    if revision == HEAD:
        return revision
    from autotune.store.migrations import known_revisions  # noqa: PLC0415

    if revision not in ("", *known_revisions()):
        raise RefusalError(
            f"The store {where} was made by a newer autotune; upgrade this one, or choose "
            "another folder with --state-dir."
        )
    return revision
