"""SQLite's files: for their owner alone, and nothing is acknowledged once they are not those that were opened."""

import asyncio
import fcntl
import os
import shutil
import sqlite3
import stat
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway
from frugal.service.store.db import SqliteDatabase, lock_of, open_database
from frugal.service.store.lock import BusyFileError, FileLock
from frugal.service.store.writer import Writer
from tests.databases import fresh_sqlite, migrate_url, rows
from tests.examples import clinic
from tests.journeys.processes import frugal
from tests.service.conftest import publish
from tests.serving import problem, serving

FILES = ["", "-wal", "-shm", ".lock"]


def modes(file: Path, *ends: str) -> set[int]:
    return {stat.S_IMODE(os.stat(f"{file}{end}").st_mode) for end in ends or FILES}


def test_all_files_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        database = SqliteDatabase(tmp_path / "f.db")
    finally:
        os.umask(before)
    assert modes(tmp_path / "f.db") == {0o600}
    database.close()


def test_files_of_an_earlier_release_become_their_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.db"
    subprocess.run(["sh", "-c", f"umask 022; touch {file} {file}.lock"], check=True)
    migrate_url(f"sqlite:///{file}")
    os.chmod(file, 0o644)
    database = SqliteDatabase(file)
    assert modes(file) == {0o600}
    database.close()


def deleted(path: Path) -> Path:
    return path.rename(path.with_name("aside"))


def replaced(path: Path) -> Path:
    """By a copy, made by another process: closing a file here would drop SQLite's locks on it."""
    subprocess.run(["cp", path, path.with_name("copy")], check=True)
    aside = deleted(path)
    path.with_name("copy").rename(path)
    return aside


def test_a_database_that_is_overwritten_in_place_takes_nothing_more(tmp_path: Path) -> None:
    """The likeliest way to restore a backup wrongly."""
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url)) as client:
        publish(client, "clinic", clinic())
        file = tmp_path / "frugal.db"
        with closing(sqlite3.connect(file)) as other:
            other.execute("VACUUM INTO ?", (str(tmp_path / "backup.db"),))
        for _ in range(300):  # with a checkpoint among them
            assert client.post("/v1/sessions", json={"model": "clinic"}).status_code == 201
        assert client.get("/readyz").status_code == 200
        subprocess.run(["cp", tmp_path / "backup.db", file], check=True)
        told = problem(client.post("/v1/sessions", json={"model": "clinic"}), 503, "database-away")
        assert "deleted or replaced" in told["detail"]
        assert problem(client.get("/readyz"), 503, "not-ready")["checks"]["database"] == "database-away"


def test_the_journal_stays_small(tmp_path: Path) -> None:
    """Though checkpoints are made by hand: after many commits, and after large ones."""
    file = tmp_path / "f.db"
    database = SqliteDatabase(file)
    database.write(lambda db: db.execute(text("CREATE TABLE t (x)")))
    for size in [10] * 2000 + [1_000_000] * 40:
        database.write(lambda db, size=size: db.execute(text("INSERT INTO t VALUES (zeroblob(:size))"), {"size": size}))
    assert os.path.getsize(f"{file}-wal") < 16 * 1024 * 1024
    assert os.path.getsize(file) > 30_000_000
    database.close()


@pytest.mark.parametrize("lost", [deleted, replaced])
@pytest.mark.parametrize("end", FILES)
def test_what_is_written_into_a_file_that_is_gone_is_not_acknowledged(tmp_path: Path, end: str, lost) -> None:
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url)) as client:
        publish(client, "clinic", clinic())
        id = client.post("/v1/sessions", json={"model": "clinic"}).json()["id"]
        path = tmp_path / f"frugal.db{end}"
        aside = lost(path)
        told = problem(client.post(f"/v1/sessions/{id}/answers", json={"feature": "fever", "value": "yes"}), 503, "database-away")
        assert "deleted or replaced" in told["detail"]
        problem(client.post("/v1/sessions", json={"model": "clinic"}), 503, "database-away")
        problem(client.put("/v1/admin/models/clinic/aliases/live", json={"version": 1}), 503, "database-away")
        assert problem(client.get("/readyz"), 503, "not-ready")["checks"]["database"] == "database-away"
        assert client.get("/livez").status_code == 200
        aside.replace(path)  # as it was: the service goes on
        reply = client.post(f"/v1/sessions/{id}/answers", json={"feature": "fever", "value": "yes"})
        assert reply.status_code == 200
        assert client.get("/readyz").status_code == 200
    assert rows(url, "SELECT count(*) FROM answers") == [(1,)]  # charged once, by whichever of the two


def test_a_server_whose_files_are_all_gone_leaves_the_place_to_another(tmp_path: Path) -> None:
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url)) as first:
        publish(first, "clinic", clinic())
        for end in FILES:
            os.unlink(tmp_path / f"frugal.db{end}")
        migrate_url(url)
        with serving(Settings(database=url)) as second:
            publish(second, "clinic", clinic())
            assert second.post("/v1/sessions", json={"model": "clinic"}).status_code == 201
            problem(first.post("/v1/sessions", json={"model": "clinic"}), 503, "database-away")
            assert rows(url, "SELECT count(*) FROM sessions") == [(1,)]


def test_where_the_lock_is_gone_another_process_may_start_and_this_one_acknowledges_nothing(tmp_path: Path) -> None:
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url)) as client:
        publish(client, "clinic", clinic())
        assert "in use by a running server" in frugal("keys", "list", "--database", url).stderr
        os.unlink(tmp_path / "frugal.db.lock")
        assert frugal("keys", "list", "--database", url).returncode == 0
        problem(client.post("/v1/sessions", json={"model": "clinic"}), 503, "database-away")


def test_a_reader_makes_no_file_where_there_is_none(tmp_path: Path) -> None:
    with fresh_sqlite(tmp_path) as url:
        database = open_database(Settings(database=url))
        os.rename(tmp_path / "frugal.db", tmp_path / "aside")
        with pytest.raises(DatabaseAway):
            database.read(lambda db: db.execute(text("SELECT 1")))
        assert not (tmp_path / "frugal.db").exists()
        database.close()


def test_all_who_share_a_commit_that_came_to_nothing_are_told_and_none_is_done_twice(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "f.db")
    database.writer.run(lambda db: db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"), 2)
    (tmp_path / "f.db.lock").rename(tmp_path / "aside")
    done: list[int] = []

    async def main() -> list[object]:
        def add(n: int):
            return lambda db: (done.append(n), db.execute("INSERT INTO t VALUES (?)", (n,)))

        release = hold(database.writer)
        works = [asyncio.create_task(database.writer.arun(add(n), 5)) for n in range(5)]
        await asyncio.sleep(0)
        release.set()
        return await asyncio.gather(*works, return_exceptions=True)

    outcomes = asyncio.run(main())
    assert all(isinstance(outcome, DatabaseAway) for outcome in outcomes)
    assert done == [0, 1, 2, 3, 4]
    database.close()


def hold(writer: Writer):
    """Keep the writer busy, so that what comes queues up."""
    begun, release = threading.Event(), threading.Event()
    threading.Thread(target=lambda: writer.run_between(lambda: (begun.set(), release.wait(20)), 30), daemon=True).start()
    assert begun.wait(20)
    return release


def test_a_lock_that_was_deleted_while_it_was_taken_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock, deletions = tmp_path / "l", fcntl.flock, iter([1, 2])

    def after_it_is_gone(descriptor: int, how: int) -> None:
        if next(deletions, None):
            os.unlink(path)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", after_it_is_gone)
    lock = FileLock(path, "it")
    assert path.exists()
    with pytest.raises(BusyFileError):
        FileLock(path, "it")
    lock.release()


def test_a_file_has_one_lock_whatever_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "other.db").symlink_to(tmp_path / "real" / "f.db")
    database = SqliteDatabase(tmp_path / "link" / "f.db")
    for way in (tmp_path / "real" / "f.db", tmp_path / "link" / "f.db", tmp_path / "other.db"):
        with pytest.raises(BusyFileError):
            lock_of(way)
    database.close()
    shutil.rmtree(tmp_path / "real")


def test_a_link_that_leads_elsewhere_now_is_noticed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        migrate_url(f"sqlite:///{tmp_path / name / 'f.db'}")
    (tmp_path / "now").symlink_to(tmp_path / "one")
    database = SqliteDatabase(tmp_path / "now" / "f.db")
    database.writer.run(lambda db: db.execute("CREATE TABLE t (n)"), 2)
    (tmp_path / "now").unlink()
    (tmp_path / "now").symlink_to(tmp_path / "two")
    with pytest.raises(DatabaseAway, match="deleted or replaced"):
        database.writer.run(lambda db: db.execute("CREATE TABLE u (n)"), 2)
    database.close()
    assert modes(tmp_path / "one" / "f.db", "", ".lock") == {0o600}


def test_a_name_that_a_url_would_read_otherwise_is_a_name(tmp_path: Path) -> None:
    file = tmp_path / "a%20b?mode=memory#c.db"
    database = SqliteDatabase(file)
    database.writer.run(lambda db: db.execute("CREATE TABLE t (n)"), 2)
    assert database.read(lambda db: db.execute(text("SELECT count(*) FROM t")).scalar()) == 0
    assert file.exists()
    database.close()
