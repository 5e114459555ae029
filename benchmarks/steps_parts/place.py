"""Where steps are measured: databases with the heart example in them, server processes, patients, and sessions opened in the tables."""

import http.client
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, insert, make_url, text

from frugal.models import Ask, Ensemble, decide
from frugal.service.config import Settings
from frugal.service.example import NAME
from frugal.service.registry.versions import read_ensemble
from frugal.service.store.db import open_database
from frugal.service.store.ids import new_id
from frugal.service.store.tables import now, sessions
from frugal.service.tables import read_file
from tests.databases import PostgresServer, rows

ROOT = Path(__file__).parent.parent.parent
OURS = [sys.executable, "-m", "frugal.service.commands.main", "serve"]
BARE = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.steps_parts.bare:create", "--no-access-log", "--no-server-header"]
BARE += ["--no-proxy-headers", "--timeout-graceful-shutdown", "30", "--log-level", "warning"]  # as service/serve.py runs ours
TALLY = """
SELECT (SELECT count(*) FROM answers), (SELECT coalesce(sum(cost), 0) FROM answers),
       (SELECT coalesce(sum(spent), 0) FROM sessions), (SELECT count(*) FROM sessions WHERE status = 'done')
"""


@dataclass
class Place:
    """What all parts share: a folder, the heart example published on both engines, and two patients' answers as they are asked for."""

    folder: Path
    server: PostgresServer | None
    ensemble: Ensemble
    longest: list[dict[str, Any]]
    shortest: list[dict[str, Any]]
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def database(self, engine: str) -> Iterator[str]:
        """A fresh copy with the example in it."""
        if engine == "postgres":
            assert self.server is not None
            with self.server.fresh() as url:
                yield url
        else:
            file = self.folder / f"steps-{next(self.numbers)}.db"
            shutil.copy(self.folder / "published.db", file)
            yield f"sqlite:///{file}"


@contextmanager
def place(folder: Path, postgres: bool) -> Iterator[Place]:
    """The example published; PostgreSQL only where it is wanted, since it takes a while."""
    with ExitStack() as stack:
        server = None
        if postgres:
            (folder / "postgres").mkdir()
            server = PostgresServer(folder / "postgres")
            stack.callback(server.stop)
            publish(server.url("migrated"))
            durable = rows(server.url("postgres"), "SELECT current_setting('fsync'), current_setting('synchronous_commit')")
            assert durable == [("on", "on")], durable
        url = f"sqlite:///{folder / 'published.db'}"
        publish(url)
        database = open_database(Settings(database=url))
        ensemble = read_ensemble(database, NAME, 1)
        database.close()
        walks = sorted((answers_of(ensemble, row) for row in patients()), key=len)
        yield Place(folder, server, ensemble, walks[-1], walks[0])


def publish(url: str) -> None:
    command = [sys.executable, "-m", "frugal.service.commands.main", "migrate", "--example", "--database", url]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def serving(command: list[str], url: str, workers: int = 1, checkout: Path = ROOT) -> Iterator[tuple[int, int]]:
    """A server process that leads a group of its own; gives its port and its process id, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    full = [*command, "--port", str(port), "--workers", str(workers)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(full, cwd=checkout, env=environment(url), stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + 120  # where the kernels have to be compiled first it takes a minute
            while not ready(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"{' '.join(full)} did not start:\n{log.read()[-2000:]}")
                time.sleep(0.1)
            yield port, process.pid
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def environment(url: str | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FRUGAL_")}
    return kept | ({"FRUGAL_DATABASE": url} if url else {})


def ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def patients() -> list[dict[str, Any]]:
    table = read_file(str(ROOT / "examples" / "heart" / "heart.csv"))
    names = [name for name in table.columns if name != "disease"]
    columns = [table[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def answers_of(ensemble: Ensemble, patient: dict[str, Any]) -> list[dict[str, Any]]:
    """What a session asks of this patient, as the bodies that answer it."""
    known: dict[str, Any] = {}
    while isinstance(asked := decide(ensemble, known), Ask):
        known[asked.feature] = patient[asked.feature]
    return [{"feature": name, "value": value} for name, value in known.items()]


def opened(url: str, count: int) -> list[str]:
    """Open sessions straight in the tables; their ids, shuffled."""
    at = now()
    ids = [new_id() for _ in range(count)]
    common = {"owner": "local", "name": NAME, "number": 1, "status": "open", "revision": 1, "seed": 0, "spent": 0}
    times = {"created_at": at, "updated_at": at, "expires_at": at + timedelta(days=7)}
    engine = engine_of(url)
    with engine.begin() as db:
        if engine.name == "sqlite":  # into the journal alone: the server takes a database that others write for one that was replaced
            db.execute(text("PRAGMA wal_autocheckpoint = 0"))
        db.execute(insert(sessions), [{"id": id, **common, **times} for id in ids])
    engine.dispose()
    found = [str(id) for id in ids]
    random.Random(0).shuffle(found)
    return found


def settled(url: str) -> None:
    """Dead rows gone, statistics as they are and pages on the disk: what PostgreSQL comes to by itself within minutes. In an SQLite file
    only its server writes, which makes checkpoints as it goes."""
    engine = engine_of(url)
    if engine.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
            for line in ("VACUUM ANALYZE", "CHECKPOINT"):
                db.execute(text(line))
    engine.dispose()


def engine_of(url: str) -> Engine:
    return create_engine(url if url.startswith("sqlite") else make_url(url).set(drivername="postgresql+psycopg"))


def processor_seconds(server: int) -> float:
    """What a server and its workers have used: far less noisy than the clock where others use the machine too."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()  # after the name: state, parent, group, ...
            if int(fields[2]) == server:
                used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


def tally(url: str) -> list[int]:
    """Answers, what they cost, what sessions spent, sessions done."""
    return [int(number) for number in rows(url, TALLY)[0]]
