"""Bringing an older store to this version's tables, with Alembic.

A change of the models needs a new file in `versions` and its name as `HEAD` in
`autotune.store.opening`; a test compares what the migrations make with the models.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import URL, NullPool, create_engine

from autotune.store.failures import BUSY_TIMEOUT_S

FOLDER = Path(__file__).parent


def known_revisions() -> list[str]:
    """Every revision that this version can bring up to date."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def migrate(where: Path, revision: str) -> None:
    """Bring the tables from a revision ("" if there are none) to the newest: wholly, or, if
    anything fails, not at all. Raise SQLAlchemyError if the database does not take it."""
    # Without a transaction that is begun by hand, Python's sqlite3 commits each CREATE and ALTER
    # by itself. And no foreign keys here: to replace a table would delete what refers to it.
    engine = create_engine(
        URL.create("sqlite", database=str(where)),
        poolclass=NullPool,
        connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None},
    )
    config = _config()
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql("PRAGMA synchronous=FULL")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        config.attributes["connection"] = connection
        if revision:
            command.stamp(config, revision)
        command.upgrade(config, "head")
        connection.commit()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config
