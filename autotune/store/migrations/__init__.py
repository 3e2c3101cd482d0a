"""Bringing an older store to this version's tables, with Alembic.

A change of the models needs a new file in `versions` and its name as `HEAD` in
`autotune.store.opening`; a test compares what the migrations make with the models.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from autotune.store import sqlite

FOLDER = Path(__file__).parent


def known_revisions() -> list[str]:
    """Every revision that this version can bring up to date."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def migrate(where: Path, revision: str) -> None:
    """Bring the tables from a revision ("" if there are none) to the newest: wholly, or, if
    anything fails, not at all. Raise SQLAlchemyError if the database does not take it."""
    config = _config()
    with sqlite.migrating_engine(where).connect() as connection:
        for statement in sqlite.MIGRATION_BEGINS:
            connection.exec_driver_sql(statement)
        config.attributes["connection"] = connection
        if revision:
            command.stamp(config, revision)
        command.upgrade(config, "head")
        connection.commit()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config
