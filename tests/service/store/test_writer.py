"""The one writer of SQLite: in order, together, and honest about what failed."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from frugal.service.errors import Busy, DatabaseAway
from frugal.service.store.db import SqliteDatabase, WriterOwned
from frugal.service.store.lock import BusyFileError, FileLock
from frugal.service.store.writer import Writer


@pytest.fixture
def writer(tmp_path: Path):
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "w.db", isolation_level=None, check_same_thread=False, factory=WriterOwned)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY)")
        return connection

    writer = Writer(connect())
    yield writer
    writer.close()


def add(n: int):
    return lambda db: db.execute("INSERT INTO t VALUES (?)", (n,)).lastrowid


def contents(writer: Writer) -> list[int]:
    return writer.run(lambda db: [n for (n,) in db.execute("SELECT n FROM t ORDER BY rowid")], 2)


def held(writer: Writer) -> threading.Event:
    """Keep the writer busy until the event is set, so that work queues up behind."""
    begun, release = threading.Event(), threading.Event()
    threading.Thread(target=lambda: writer.run(lambda _: (begun.set(), release.wait(10)), 20), daemon=True).start()
    begun.wait(5)
    return release


def test_work_is_done_in_order_of_arrival(writer: Writer) -> None:
    order: list[int] = []
    release = held(writer)

    async def main() -> None:
        jobs = [asyncio.create_task(writer.arun(lambda _, i=i: order.append(i), 5)) for i in range(50)]
        await asyncio.sleep(0.05)
        release.set()
        await asyncio.gather(*jobs)

    asyncio.run(main())
    assert order == list(range(50))


def test_past_its_limit_the_queue_takes_no_more_of_coroutines(writer: Writer) -> None:
    writer.most = 3
    release = held(writer)

    async def main() -> None:
        jobs = [asyncio.create_task(writer.arun(add(i), 5)) for i in range(5)]
        done, waiting = await asyncio.wait(jobs, timeout=0.2)
        assert [type(job.exception()) for job in done] == [Busy, Busy]
        release.set()
        await asyncio.gather(*waiting)
        await writer.arun(add(9), 5)

    asyncio.run(main())
    assert contents(writer) == [0, 1, 2, 9]


def test_a_file_that_cannot_be_written_fails_all_who_wait_together(writer: Writer, tmp_path: Path) -> None:
    writer.run(lambda db: None, 2)  # nothing is under way
    writer.connection.execute("PRAGMA busy_timeout = 500")
    other = sqlite3.connect(tmp_path / "w.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def main() -> list[object]:
        return await asyncio.gather(*(writer.arun(add(i), 30) for i in range(40)), return_exceptions=True)

    begun = time.monotonic()
    found = asyncio.run(main())
    other.close()
    assert {type(each) for each in found} == {DatabaseAway}
    assert time.monotonic() - begun < 10  # a wait or two for all, not forty


def test_what_fails_fails_alone(writer: Writer) -> None:
    release = held(writer)

    async def main() -> list:
        jobs = [asyncio.create_task(writer.arun(add(n), 5)) for n in (1, 2, 2, 3)]
        await asyncio.sleep(0.05)
        release.set()
        return await asyncio.gather(*jobs, return_exceptions=True)

    first, second, twin, third = asyncio.run(main())
    assert (first, second, third) == (1, 2, 3)
    assert isinstance(twin, sqlite3.IntegrityError)
    assert contents(writer) == [1, 2, 3]


def test_half_of_a_failed_piece_does_not_stay(writer: Writer) -> None:
    def half(db) -> None:
        db.execute("INSERT INTO t VALUES (7)")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        writer.run(half, 2)
    assert contents(writer) == []


def test_a_commit_that_fails_is_told_to_whom_it_fails(writer: Writer) -> None:
    writer.run(lambda db: db.execute("CREATE TABLE c (n REFERENCES t DEFERRABLE INITIALLY DEFERRED)"), 2)
    release = held(writer)

    async def main() -> list:
        jobs = [writer.arun(add(1), 5), writer.arun(lambda db: db.execute("INSERT INTO c VALUES (99)"), 5), writer.arun(add(2), 5)]
        tasks = [asyncio.create_task(job) for job in jobs]
        await asyncio.sleep(0.05)
        release.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, culprit, second = asyncio.run(main())
    assert (first, second) == (1, 2)
    assert isinstance(culprit, DatabaseAway)
    assert contents(writer) == [1, 2]
    assert writer.run(add(3), 2) == 3


def test_who_waits_too_long_is_told_and_not_served(writer: Writer) -> None:
    release = held(writer)
    with pytest.raises(Busy):
        writer.run(add(1), 0.05)

    async def main() -> None:
        with pytest.raises(Busy):
            await writer.arun(add(2), 0.05)

    asyncio.run(main())
    release.set()
    assert contents(writer) == []


def test_closing_finishes_what_is_queued(writer: Writer, tmp_path: Path) -> None:
    release = held(writer)
    done = []
    threads = [threading.Thread(target=lambda n=n: done.append(writer.run(add(n), 5))) for n in (1, 2)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    release.set()
    writer.close()
    for thread in threads:
        thread.join()
    assert sorted(done) == [1, 2]
    with pytest.raises(DatabaseAway):
        writer.run(add(3), 1)


def test_only_the_writer_writes(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "deep" / "folder" / "f.db")
    try:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.reader().execute("CREATE TABLE t (n)")
        with pytest.raises(DatabaseAway):
            database.read(lambda db: db.exec_driver_sql("CREATE TABLE t (n)"))
        assert database.writer.run(lambda db: db.execute("PRAGMA journal_mode").fetchone(), 2) == ("wal",)
        assert database.writer.run(lambda db: db.execute("PRAGMA synchronous").fetchone(), 2) == (2,)  # FULL
    finally:
        database.close()


def test_a_file_has_one_process(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "l", "the database x")
    with pytest.raises(BusyFileError, match=r"the database x is in use by process \d+.*PostgreSQL"):
        FileLock(tmp_path / "l", "the database x")
    lock.release()
    FileLock(tmp_path / "l", "the database x").release()
