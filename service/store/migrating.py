"""Migrations, configured in code so that an installed package can migrate: up to head, down again, and whether a database is at head."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from frugal import migrations
from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway
from frugal.service.store.db import Database, open_database
from frugal.service.store.lock import FileLock

LOCK = 7_302_871_665  # the advisory lock under which PostgreSQL migrates: two servers that start together take turns


@contextmanager
def prepared(settings: Settings, lock: FileLock | None = None) -> Iterator[Database]:
    """The database of these settings, with the tables of this release; ValueError says in words why not."""
    try:
        database = open_database(settings, lock)
    except sqlite3.Error as error:
        raise ValueError(f"cannot use {settings.shown_database}: {error}") from None
    try:
        if settings.migrate == "auto":
            migrate(database)
        elif not at_head(database):
            raise ValueError("the database is not at this release's tables, and FRUGAL_MIGRATE is never: run frugal migrate")
        yield database
    except DatabaseAway as error:
        reason = str(error.__cause__ or error).strip().split("\n")[0]
        raise ValueError(f"cannot use {settings.shown_database}: {reason}") from None
    finally:
        database.close()


def migrate(database: Database, to: str = "head") -> None:
    """Bring the tables to a revision, by default the newest; "base" is empty."""

    def run(db: Connection) -> None:
        if db.dialect.name == "postgresql":
            db.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        config = _config()
        config.attributes["connection"] = db
        before = _at(db)
        if to != "base" and before is not None and before not in _known():
            raise ValueError(f"the database is at revision {before}, which this release does not know: it was migrated by a newer one")
        (command.downgrade if to == "base" else command.upgrade)(config, to)

    database.write(run)


def at_head(database: Database) -> bool:
    return database.read(_at) == head()


@cache
def head() -> str:
    found = ScriptDirectory.from_config(_config()).get_current_head()
    assert found is not None
    return found


def _at(db: Connection) -> str | None:
    return MigrationContext.configure(db).get_current_revision()


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    return config
