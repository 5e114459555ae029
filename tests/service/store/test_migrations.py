"""Migrations lead from nothing to tables.py and back, on both databases."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from frugal.migrations import versions
from frugal.service.config import Settings
from frugal.service.store.db import Database, open_database
from frugal.service.store.migrating import at_head, head, migrate
from frugal.service.store.tables import metadata
from tests.databases import PostgresServer

CATALOGUE = {
    "sqlite": ["SELECT name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE '%alembic%' AND name NOT LIKE 'sqlite_%'"],
    "postgresql": [
        """SELECT table_name, column_name, data_type, is_nullable, column_default, character_maximum_length
           FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'""",
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'",
        """SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
           WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass""",
        "SELECT attrelid::regclass, attname, attstorage FROM pg_attribute WHERE attrelid = 'archive_chunks'::regclass AND attnum > 0",
        """SELECT relname, reloptions::text FROM pg_class
           WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL""",
    ],
}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        database = open_database(Settings(database=f"sqlite:///{tmp_path / 'empty.db'}"))
        yield database
        database.close()
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with server.fresh("template1") as url:
        database = open_database(Settings(database=url))
        yield database
        database.close()


def catalogue(db: Connection) -> list[list[str]]:
    """Every table, column, index and constraint, as the database itself describes them."""
    queries = CATALOGUE[db.dialect.name]
    return [sorted(" ".join(" ".join(map(str, row)).split()) for row in db.execute(text(query))) for query in queries]


def tables(db: Connection) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if db.dialect.name == "postgresql":
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    return {name for (name,) in db.execute(text(query))} - {"alembic_version"}


def test_from_empty_to_head_equals_the_tables(empty: Database) -> None:
    assert not at_head(empty)
    migrate(empty)
    assert at_head(empty)
    assert empty.read(lambda db: compare_metadata(MigrationContext.configure(db, opts={"compare_type": True}), metadata)) == []
    migrated = empty.read(catalogue)
    migrate(empty, "base")
    assert empty.read(tables) == set()
    empty.write(lambda db: metadata.create_all(db))
    assert _without_order(empty.read(catalogue)) == _without_order(migrated)


def test_down_and_up_again(empty: Database) -> None:
    migrate(empty)
    first = empty.read(catalogue)
    migrate(empty, "base")
    assert not at_head(empty)
    migrate(empty)
    assert empty.read(catalogue) == first
    migrate(empty)
    assert at_head(empty)


def test_a_database_from_a_newer_release_is_left_alone(empty: Database) -> None:
    migrate(empty)
    empty.write(lambda db: db.execute(text("UPDATE alembic_version SET version_num = '2999_01_01_future'")))
    assert not at_head(empty)
    with pytest.raises(ValueError, match="newer"):
        migrate(empty)


def test_file_names_are_dated_and_match_their_revisions() -> None:
    names = sorted(path.stem for path in Path(versions.__file__).parent.glob("2*.py"))
    assert head() == names[-1]


def _without_order(found: list[list[str]]) -> list[list[str]]:
    """SQLite shows the statement that made a table: constraints may stand in another order, and a renamed table in quotes."""
    return [sorted("".join(sorted(re.sub(r'[,()"]', " ", line).split())) for line in part) for part in found]
