"""Staged bytes, on both databases: who may point to them, when they go, and in how small pieces."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from frugal.service.config import Settings
from frugal.service.errors import Busy
from frugal.service.store import archives
from frugal.service.store import version_rows as versions
from frugal.service.store.db import Database, open_database
from frugal.service.store.ids import new_id
from tests.databases import rows

HOUR = timedelta(hours=1)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(Settings(database=database_url))
    yield database
    database.close()


class Counting:
    """A database that says how many chunks each of its transactions took away."""

    def __init__(self, database: Database) -> None:
        self.database, self.taken = database, []  # type: ignore[var-annotated]

    def write(self, work: Callable[[Connection], Any]) -> Any:
        def counted(db: Connection) -> Any:
            before = db.execute(COUNT).scalar_one()
            done = work(db)
            self.taken.append(before - db.execute(COUNT).scalar_one())
            return done

        return self.database.write(counted)


COUNT = text("SELECT count(*) FROM archive_chunks")


def stage(database: Database, chunks: int = 1) -> Any:
    return archives.stage_chunks(database, [b"x"] * chunks)


def publish(database: Database, id: Any) -> None:
    database.write(lambda db: versions.insert_version(db, "model", id, {}))


def sweep(database: Database, kept: timedelta = timedelta(0)) -> None:
    database.write(lambda db: archives.condemn_unused(db, kept))
    archives.drop_condemned(database)


def left(url: str) -> list[Any]:
    return [size for (size,) in rows(url, "SELECT size FROM archives")]


def test_what_nothing_points_to_goes_after_its_time(database: Database, database_url: str) -> None:
    stage(database, 2)
    sweep(database, HOUR)
    assert left(database_url) == [2]
    sweep(database)
    assert left(database_url) == []
    assert rows(database_url, str(COUNT)) == [(0,)]


def test_what_a_version_points_to_stays(database: Database, database_url: str) -> None:
    id = stage(database)
    publish(database, id)
    sweep(database)
    database.write(lambda db: archives.condemn(db, id))
    archives.drop_condemned(database)
    assert database.read(lambda db: archives.fetch(db, id)) == b"x"


def test_bytes_go_a_few_chunks_at_a_time(database: Database, database_url: str) -> None:
    stage(database, 3 * archives.TOGETHER + 1)
    stage(database, archives.TOGETHER)
    database.write(archives.condemn_unused)
    counting = Counting(database)
    archives.drop_condemned(counting)  # type: ignore[arg-type]
    assert max(counting.taken) == archives.TOGETHER
    assert sum(counting.taken) == 4 * archives.TOGETHER + 1
    assert left(database_url) == []


def test_a_turn_is_bounded(database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "PIECES", 2)
    stage(database, 3 * archives.TOGETHER)
    database.write(archives.condemn_unused)
    assert archives.drop_condemned(database)
    assert rows(database_url, str(COUNT)) == [(archives.TOGETHER,)]
    assert archives.drop_condemned(database)
    assert not archives.drop_condemned(database)
    assert left(database_url) == []


def test_nothing_can_point_to_what_is_condemned(database: Database, database_url: str) -> None:
    staging = archives.Staging(database)
    staging.add([b"x"])
    database.write(archives.condemn_unused)
    staging.seal()  # which does not bring it back
    with pytest.raises(Busy):
        publish(database, staging.id)
    with pytest.raises(Busy):
        publish(database, new_id())
    assert rows(database_url, "SELECT count(*) FROM versions") == [(0,)]


def test_pointing_and_condemning_at_once_have_one_winner(database: Database, database_url: str) -> None:
    for number in range(20):
        id, start = stage(database), threading.Barrier(2)

        def point(id: Any = id, start: threading.Barrier = start, name: str = f"model-{number}") -> bool:
            start.wait()
            try:
                database.write(lambda db: versions.insert_version(db, name, id, {}))
            except Busy:
                return False
            return True

        def condemn(start: threading.Barrier = start) -> None:
            start.wait()
            sweep(database)

        with ThreadPoolExecutor(2) as pool:
            pointed, condemned = pool.submit(point), pool.submit(condemn)
        condemned.result()
        if pointed.result():
            assert database.read(lambda db, id=id: archives.fetch(db, id)) == b"x"
    assert -1 not in left(database_url)


def test_a_failed_upload_leaves_nothing(database: Database, database_url: str) -> None:
    def broken() -> Iterator[bytes]:
        yield from [b"x"] * (archives.TOGETHER + 1)
        raise OSError("the sender has gone")

    with pytest.raises(OSError, match="gone"):
        archives.stage_chunks(database, broken())
    assert left(database_url) == []
