"""/livez and /readyz: alive is not ready, and what cannot be written is not ready either."""

import io
import json
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from frugal.service.address import Address
from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway
from frugal.service.logs import JsonLines
from frugal.service.store.db import open_database
from tests.databases import PostgresServer, fresh_sqlite, rows
from tests.examples import clinic
from tests.racing import at_once
from tests.service.conftest import publish
from tests.serving import problem, serving


def test_a_server_that_can_serve_is_ready(client: httpx.Client) -> None:
    assert client.get("/livez").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready", "checks": {"database": "ok", "migrations": "ok", "kernels": "ok"}}


def test_a_database_that_is_not_at_head_is_not_ready(client: httpx.Client) -> None:
    database = client.app.state.database  # type: ignore[attr-defined]
    database.write(lambda db: db.execute(text("UPDATE alembic_version SET version_num = 'other'")))
    told = problem(client.get("/readyz"), 503, "not-ready")
    assert told["checks"] == {"database": "ok", "migrations": "not at head: run frugal migrate", "kernels": "ok"}
    assert client.get("/livez").status_code == 200


def test_kernels_that_are_not_compiled_are_not_ready(client: httpx.Client) -> None:
    client.app.state.warm = False  # type: ignore[attr-defined]
    assert problem(client.get("/readyz"), 503, "not-ready")["checks"]["kernels"] == "compiling"


def test_writing_is_tried_at_most_every_few_seconds(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    database, tries = client.app.state.database, []  # type: ignore[attr-defined]
    monkeypatch.setattr(database, "try_write", lambda real=database.try_write: (tries.append(1), real()))
    replies = at_once([lambda: client.get("/readyz").status_code] * 32)
    assert set(replies) == {200}
    assert len(tries) == 1
    monkeypatch.setattr(client.app.state.trial, "_until", 0.0)  # type: ignore[attr-defined]
    client.get("/readyz")
    assert len(tries) == 2


def test_a_try_leaves_nothing(client: httpx.Client, database_url: str) -> None:
    tables = ("sessions", "answers", "archives")
    before = [rows(database_url, f"SELECT count(*) FROM {table}") for table in tables]
    client.app.state.database.try_write()  # type: ignore[attr-defined]
    assert [rows(database_url, f"SELECT count(*) FROM {table}") for table in tables] == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_is_not_ready_until_there_is_room(small_disk: Path) -> None:
    with fresh_sqlite(small_disk) as url, serving(Settings(database=url)) as client:
        publish(client, "clinic", clinic())
        assert client.get("/readyz").status_code == 200
        with (small_disk / "full").open("wb", buffering=0) as full, suppress(OSError):
            while True:
                full.write(b"x" * 4096)
        client.app.state.trial._until = 0.0  # type: ignore[attr-defined]
        assert problem(client.get("/readyz"), 503, "not-ready")["checks"]["database"] == "cannot be written"
        assert problem(client.get("/readyz"), 503, "not-ready")  # remembered
        refused = until(lambda: client.post("/v1/sessions", json={"model": "clinic"}), lambda reply: reply.status_code != 201)
        problem(refused, 503, "database-away")
        (small_disk / "full").unlink()
        client.app.state.trial._until = 0.0  # type: ignore[attr-defined]
        assert client.get("/readyz").status_code == 200
        assert client.post("/v1/sessions", json={"model": "clinic"}).status_code == 201


def until(ask: Callable[[], httpx.Response], enough: Callable[[httpx.Response], bool]) -> httpx.Response:
    """Again and again: a journal has some room left that it once had."""
    for _ in range(5000):
        if enough(reply := ask()):
            return reply
    raise AssertionError("it never came")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from sqlalchemy import text
from frugal.service.errors import DatabaseAway
from frugal.service.store.db import SqliteDatabase

database = SqliteDatabase(Path(sys.argv[1]))
database.try_write()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write beyond the limit fails as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for work in (database.try_write, lambda: database.write(lambda db: db.execute(text("CREATE TABLE t AS SELECT randomblob(4000000)")))):
    try:
        work()
    except DatabaseAway as error:
        print(type(error.__cause__).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
database.try_write()
database.close()
"""


@pytest.mark.parametrize(("limit", "causes"), [(4096, "OSError OperationalError"), (2_000_000, "OperationalError")])
def test_a_process_that_may_write_no_more_is_told_so(tmp_path: Path, limit: int, causes: str) -> None:
    """A full disk for those who cannot mount one. At the larger limit a small file has room, and a large write has not."""
    with fresh_sqlite(tmp_path) as url:
        done = subprocess.run([sys.executable, "-c", LIMITED, url.removeprefix("sqlite:///"), str(limit)], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == causes.split()


def damage(file: Path) -> None:
    """By another process: closing the file in this one would drop SQLite's locks on it."""
    size = file.stat().st_size
    subprocess.run(["dd", "if=/dev/urandom", f"of={file}", f"bs={size}", "count=1", "conv=notrunc", "status=none"], check=True)


def test_a_damaged_file_is_not_ready_and_told_as_the_database_being_away(tmp_path: Path) -> None:
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url)) as client:
        publish(client, "clinic", clinic())
        id = client.post("/v1/sessions", json={"model": "clinic"}).json()["id"]
        state = client.app.state  # type: ignore[attr-defined]
        state.database.writer.run_between(lambda: state.database.writer.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close(), 5)
        damage(tmp_path / "frugal.db")
        assert problem(client.get("/readyz"), 503, "not-ready")["checks"]["database"] in ("cannot be written", "database-away")
        state.ledger.reader.close()
        state.ledger.reader = sqlite3.connect(tmp_path / "frugal.db", check_same_thread=False)  # that remembers nothing
        problem(client.get(f"/v1/sessions/{id}"), 503, "database-away")
        state.database.engine.dispose()
        problem(client.get("/v1/models"), 503, "database-away")


@pytest.mark.parametrize("kind", [sqlite3.DatabaseError, sqlite3.OperationalError, sqlite3.InternalError, sqlite3.NotSupportedError])
def test_every_kind_of_database_error_of_sqlite_is_the_database_being_away(tmp_path: Path, kind: type[Exception]) -> None:
    def fail(*_: object) -> None:
        raise kind("something")

    with fresh_sqlite(tmp_path) as url:
        database = open_database(Settings(database=url))
        with pytest.raises(DatabaseAway):
            database.writer.run(fail, 2)
        with pytest.raises(DatabaseAway):
            database.write(fail)
        with pytest.raises(DatabaseAway):
            database.read(fail)
        database.writer.run(lambda db: db.execute("SELECT 1"), 2)
        database.close()


def test_a_postgresql_that_only_reads_is_not_ready(postgres: PostgresServer) -> None:
    with postgres.fresh() as url, serving(Settings(database=url)) as client:
        assert client.get("/readyz").status_code == 200
        name = Address.read(url).name
        postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        client.app.state.trial._until = 0.0  # type: ignore[attr-defined]
        ready = until(lambda: client.get("/readyz"), lambda reply: "database-away" not in reply.text)
        assert problem(ready, 503, "not-ready")["checks"]["database"] == "cannot be written"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, as it is logged."""
    heard, log = io.StringIO(), logging.getLogger("frugal")
    handler = logging.StreamHandler(heard)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    yield heard
    log.removeHandler(handler)


def test_a_broken_rule_of_the_tables_is_a_fault_of_ours_and_logged_with_its_name(
    client: httpx.Client, database_url: str, lines: io.StringIO
) -> None:
    """Not 503: the same request would break it again, for ever."""
    database = client.app.state.database  # type: ignore[attr-defined]
    database.write(lambda db: db.execute(text("CREATE UNIQUE INDEX only_one ON sessions (reference)")))
    database.write(lambda db: db.execute(text("CREATE UNIQUE INDEX one_owner ON keys (owner)")))
    assert client.post("/v1/sessions", json={"model": "clinic", "reference": "x"}).status_code == 201
    for headers in ({}, {"Idempotency-Key": "k"}):
        problem(client.post("/v1/sessions", json={"model": "clinic", "reference": "x"}, headers=headers), 500, "internal")
    database.write(lambda db: db.execute(text("CREATE UNIQUE INDEX one_feature ON answers (feature)")))
    ids = [client.post("/v1/sessions", json={"model": "clinic"}).json()["id"] for _ in range(2)]
    answer = {"feature": "fever", "value": "yes"}
    assert client.post(f"/v1/sessions/{ids[0]}/answers", json=answer).status_code == 200
    problem(client.post(f"/v1/sessions/{ids[1]}/answers", json=answer), 500, "internal")
    made = client.post("/v1/admin/keys", json={"owner": "me", "role": "admin"}).json()
    again = client.post("/v1/admin/keys", json={"owner": "me", "role": "admin"}, headers={"Authorization": f"Bearer {made['key']}"})
    problem(again, 500, "internal")
    told = [json.loads(line)["constraint"] for line in lines.getvalue().splitlines() if '"error"' in line]
    expected = ["sessions.reference"] * 2 + ["answers.feature", "keys.owner"]
    if database_url.startswith("postgresql"):
        expected = ["sessions.only_one"] * 2 + ["answers.one_feature", "keys.one_owner"]
    assert [line.removeprefix("UNIQUE constraint failed: ") for line in told] == expected
