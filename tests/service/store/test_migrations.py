"""Migrations lead from nothing to tables.py and back, on both databases."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, insert, text

from frugal.migrations import versions
from frugal.models import dump
from frugal.service.config import Settings
from frugal.service.registry.versions import publish
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database, open_database
from frugal.service.store.ids import new_id
from frugal.service.store.migrating import at_head, head, migrate
from frugal.service.store.tables import metadata, now, sessions
from tests.databases import PostgresServer
from tests.examples import aimed
from tests.serving import serving

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
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with server.fresh("template1") as url:
        yield url


@pytest.fixture
def empty(empty_url: str) -> Iterator[Database]:
    with closing(open_database(Settings(database=empty_url))) as database:
        yield database


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


BEFORE_AIMS = "2026_11_16_3_training"


def test_sessions_that_were_opened_before_there_were_aims_go_on_as_before(empty_url: str) -> None:
    """Also on a model with operating points, by which a session that is opened now would stop."""
    ids = [new_id() for _ in range(3)]
    with closing(open_database(Settings(database=empty_url))) as database:
        migrate(database, BEFORE_AIMS)
        publish(database, "aimed", dump(aimed()), Actor("me"))
        at = now()
        for id, confidence, budget in zip(ids, (None, 0.595, 1.0), (None, 60_000_000, None), strict=True):
            row = {"id": id, "owner": "local", "name": "aimed", "number": 1, "status": "open", "revision": 1, "seed": 0, "spent": 0}
            times = {"created_at": at, "updated_at": at, "expires_at": at + timedelta(days=1)}
            database.write(
                lambda db, values=row | times | {"confidence": confidence, "budget": budget}: db.execute(insert(sessions).values(values))
            )
        migrate(database)
        stops = "SELECT aim, confidence, stop_confidence, stop_cap FROM sessions ORDER BY id"
        assert database.read(lambda db: [tuple(row) for row in db.execute(text(stops))]) == [
            (None, None, None, None),
            (None, 0.595, 0.595, None),
            (None, 1.0, 1.0, None),
        ]
    with serving(Settings(database=empty_url)) as client:
        ends = [ended(client, str(id), {"fever": "yes", "sugar": 120, "scan": "dark"}) for id in ids[::2]]
        assert ends == [("leaf", 56.0, None, None), ("leaf", 56.0, None, 1.0)]
        assert ended(client, str(ids[1]), {"fever": "yes", "sugar": 80}) == ("confident", 6.0, None, 0.595)
        now_opened = client.post("/v1/sessions", json={"model": "aimed"}).json()["id"]
        assert ended(client, now_opened, {"fever": "yes", "sugar": 120}) == ("aim", 6.0, None, None)


def ended(client: httpx.Client, id: str, case: dict[str, object]) -> tuple[object, ...]:
    """How a session ends that is answered from this case."""
    session = client.get(f"/v1/sessions/{id}").json()
    while ask := session["ask"]:
        reply = client.post(f"/v1/sessions/{id}/answers", json={"feature": ask["feature"], "value": case[ask["feature"]]})
        assert reply.status_code == 200, reply.text
        session = reply.json()
    return session["prediction"]["reason"], session["spent"], session["aim"], session["confidence"]


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
