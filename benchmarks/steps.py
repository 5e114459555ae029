"""An answer step beside a bare FastAPI endpoint that runs one UPDATE ... INSERT on the same database; real processes on loopback.

    python benchmarks/steps.py [--only postgres sqlite many workers predict memory] [--rounds 5] [--quick]

Bars, with 16 clients and one worker process: on PostgreSQL and on SQLite at least 0.6 of the bare endpoint's requests per second, p50 within
1.8 times; 200,000 open sessions change that by less than 10 %; from one worker to two at least 0.95 of the bare endpoint's own gain;
/v1/predict of 10,000 rows at least 0.5 of the speed of json.loads, acquire and json.dumps in a loop; memory flat over 50,000 sessions.
Medians of interleaved rounds; after each, the tables are counted. PostgreSQL and SQLite as durable as they come. The last line is JSON.
"""

import argparse
import http.client
import itertools
import json
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import create_engine, insert, make_url, text

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.loading import load
from models import Ask, Ensemble, acquire, decide
from service.config import Settings
from service.example import NAME
from service.reading import read_csv
from service.registry.versions import read_ensemble
from service.store.db import open_database
from service.store.ids import new_id
from service.store.tables import now, sessions
from tests.databases import PostgresServer, rows

PARTS = ("postgres", "sqlite", "many", "workers", "predict", "memory")
ENGINES = ("postgres", "sqlite")
CLIENTS = 16
OURS = [sys.executable, "-m", "service.cli", "serve"]
BARE = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.bare_step:create", "--no-access-log", "--no-server-header"]
BARE += ["--no-proxy-headers", "--timeout-graceful-shutdown", "30", "--log-level", "warning"]  # as service/serve.py runs ours
TALLY = """
SELECT (SELECT count(*) FROM answers), (SELECT coalesce(sum(cost), 0) FROM answers),
       (SELECT coalesce(sum(spent), 0) FROM sessions), (SELECT count(*) FROM sessions WHERE status = 'done')
"""


@dataclass
class Sizes:
    """How much is measured."""

    rounds: int = 5
    sessions: int = 1000  # answered to their end in a round
    open_sessions: int = 200_000
    memory_step: int = 10_000
    rows: int = 10_000

    @property
    def needed(self) -> int:
        """Sessions for one server's rounds, the warming one included."""
        return (self.rounds + 1) * self.sessions


@dataclass
class Place:
    """What all parts share: a folder, the heart example published on both engines, and a patient's answers in the order of the questions."""

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


@dataclass
class Target:
    """One server under load, the sessions that wait for it, and what was measured."""

    name: str
    port: int
    url: str
    waiting: list[str]  # shared by the servers of one database
    rps: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)


# Processes


@contextmanager
def place(folder: Path, parts: set[str]) -> Iterator[Place]:
    """Both engines ready. PostgreSQL only where a part needs it."""
    with ExitStack() as stack:
        server = None
        if parts - {"sqlite", "predict"}:
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
    command = [sys.executable, "-m", "service.cli", "migrate", "--example", "--database", url]
    subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, check=True)


@contextmanager
def serving(command: list[str], url: str, workers: int = 1) -> Iterator[tuple[int, int]]:
    """A server process; gives its port and its process id, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    full = [*command, "--port", str(port), "--workers", str(workers)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(full, cwd=ROOT, env=environment(url), stdout=log, stderr=log, start_new_session=True)
        try:
            while not ready(port):
                if process.poll() is not None:
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


# Cases and rows


def patients() -> list[dict[str, Any]]:
    table = read_csv(str(ROOT / "examples" / "heart" / "heart.csv"))
    names = [name for name in table.columns if name != "disease"]
    columns = [table[name].tolist() for name in names]
    return [{name: value for name, value in zip(names, row, strict=True) if value == value} for row in zip(*columns, strict=True)]


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
    driver = make_url(url) if url.startswith("sqlite") else make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(driver)
    with engine.begin() as db:
        db.execute(insert(sessions), [{"id": id, **common, **times} for id in ids])
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        for line in ("VACUUM ANALYZE", "CHECKPOINT") if engine.name == "postgresql" else ("ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"):
            db.execute(text(line))
    engine.dispose()
    found = [str(id) for id in ids]
    random.Random(0).shuffle(found)
    return found


def tally(url: str) -> list[int]:
    """Answers, what they cost, what sessions spent, sessions done."""
    return [int(number) for number in rows(url, TALLY)[0]]


# Measuring


def interleaved(targets: list[Target], answers: list[dict[str, Any]], sizes: Sizes) -> None:
    for target in targets:
        one_round(target, answers, sizes.sessions)  # connections, prepared statements and the loaded version are there now
    for _ in range(sizes.rounds):
        for target in targets:
            found = one_round(target, answers, sizes.sessions)
            target.rps.append(found["requests"] / found["seconds"])
            target.p50.append(found["p50"])
            target.p99.append(found["p99"])
    for target in targets:
        spread = f"{min(target.rps):,.0f} to {max(target.rps):,.0f}"
        print(
            f"{target.name:32} {median(target.rps):7,.0f} requests/s ({spread:>14}), "
            f"p50 {median(target.p50):6.2f} ms, p99 {median(target.p99):6.2f} ms"
        )


def one_round(target: Target, answers: list[dict[str, Any]], count: int) -> dict[str, float]:
    """Answer so many sessions to their end, and count that each answer is there once and that charges and sums agree."""
    ids = [target.waiting.pop() for _ in range(count)]
    before = tally(target.url)
    found = load(target.port, CLIENTS, answers, ids=ids)
    after = tally(target.url)
    asked = count * len(answers)
    assert found["requests"] == after[0] - before[0] == asked, (target.name, found, before, after)
    assert after[1] == after[2], (target.name, after)
    assert after[3] - before[3] == (count if target.name.startswith("ours") else 0), (target.name, before, after)
    return found


def sides(stack: ExitStack, place: Place, engine: str, sizes: Sizes, open_sessions: int = 0, workers: int = 1) -> list[Target]:
    """Ours and the bare endpoint, running: on one PostgreSQL database, or on an SQLite file each, which has one process."""
    found = []
    count = max(open_sessions, 2 * sizes.needed)
    label = f"{engine}, {workers} workers" if workers > 1 else f"{engine}, {count:,} open" if open_sessions else engine
    for name, command in (("ours", OURS), ("bare", BARE)):
        if engine == "sqlite" or not found:
            url = stack.enter_context(place.database(engine))
            waiting = opened(url, count)
        port, _ = stack.enter_context(serving(command, url, workers))
        found.append(Target(f"{name}  {label}", port, url, waiting))
    return found


def ratio(ours: Target, theirs: Target, what: str = "rps") -> float:
    return median(getattr(ours, what)) / median(getattr(theirs, what))


# The parts


def beside_bare(place: Place, engine: str, sizes: Sizes, report: dict[str, float]) -> None:
    with ExitStack() as stack:
        ours, bare = sides(stack, place, engine, sizes)
        interleaved([ours, bare], place.longest, sizes)
    report[f"{engine}_rps_ratio"] = round(ratio(ours, bare), 3)
    report[f"{engine}_p50_ratio"] = round(ratio(ours, bare, "p50"), 3)
    print(f"{engine}: {report[f'{engine}_rps_ratio']} of the requests per second, {report[f'{engine}_p50_ratio']} times the p50")


def many(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    """The same with few sessions in the table and with very many, of which some at random are answered."""
    for engine in ENGINES:
        with ExitStack() as stack:
            few = sides(stack, place, engine, sizes)
            full = sides(stack, place, engine, sizes, open_sessions=sizes.open_sessions)
            interleaved([few[0], full[0], few[1], full[1]], place.longest, sizes)
        report[f"{engine}_many_sessions_change"] = round(ratio(full[0], few[0]) - 1, 3)
        report[f"{engine}_many_sessions_change_bare"] = round(ratio(full[1], few[1]) - 1, 3)
        report[f"{engine}_many_sessions_rps_ratio"] = round(ratio(*full), 3)
        print(
            f"{sizes.open_sessions:,} open sessions on {engine}: {100 * report[f'{engine}_many_sessions_change']:+.1f} % requests per second, "
            f"the bare endpoint {100 * report[f'{engine}_many_sessions_change_bare']:+.1f} %"
        )
    report["many_sessions_change"] = min(report[f"{engine}_many_sessions_change"] for engine in ENGINES)


def workers(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    with ExitStack() as stack:
        one, two = (sides(stack, place, "postgres", sizes, workers=count) for count in (1, 2))
        interleaved([one[0], two[0], one[1], two[1]], place.longest, sizes)
    gains = ratio(two[0], one[0]), ratio(two[1], one[1])
    report["workers_gain"], report["workers_gain_bare"] = round(gains[0], 3), round(gains[1], 3)
    report["workers_gain_ratio"] = round(gains[0] / gains[1], 3)
    print(f"two workers: {gains[0]:.2f} times one; the bare endpoint {gains[1]:.2f}; {report['workers_gain_ratio']} of its gain")


def predicting(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    """Real rows over and over, through the server and in a loop that only reads, acquires and writes."""
    some = random.Random(0).choices(patients(), k=sizes.rows)
    body = json.dumps({"model": NAME, "rows": some}).encode()
    with place.database("sqlite") as url, serving(OURS, url) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        served, looped = [], []
        for _ in range(1 + 3 * sizes.rounds):
            start = time.perf_counter()
            connection.request("POST", "/v1/predict", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            said = reply.read()
            served.append(time.perf_counter() - start)
            assert reply.status == 200, said
            start = time.perf_counter()
            written = in_a_loop(place.ensemble, body)
            looped.append(time.perf_counter() - start)
            assert json.loads(said) == json.loads(written)
        connection.close()
    report["predict_ratio"] = round(median(looped[1:]) / median(served[1:]), 3)
    print(
        f"predict of {sizes.rows:,} rows, {len(body):,} bytes: {1000 * median(served[1:]):.0f} ms over HTTP, "
        f"{1000 * median(looped[1:]):.0f} ms in a loop: {report['predict_ratio']} of its speed"
    )


def in_a_loop(ensemble: Ensemble, body: bytes) -> str:
    asked = json.loads(body)
    found = acquire(ensemble, ensemble.schema.encode_rows(asked["rows"], ensemble.used))
    names, labels = ensemble.schema.names, [str(label) for label in ensemble.classes]
    columns = (array.tolist() for array in (found.labels, found.probabilities, found.cost, found.acquired))
    shown = [
        {
            "label": str(label),
            "probabilities": dict(zip(labels, chances, strict=True)),
            "cost": cost,
            "features": list(itertools.compress(names, bought)),
        }
        for label, chances, cost, bought in zip(*columns, strict=True)
    ]
    return json.dumps({"model": {"name": NAME, "version": 1}, "rows": shown})


def memory(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    """A worker's resident memory while sessions are opened and answered to their end over HTTP."""
    held = []
    with place.database("postgres") as url, serving(OURS, url) as (port, process):
        for step in range(1, 7):
            load(port, CLIENTS, place.shortest, opening={"model": NAME}, sessions=sizes.memory_step)
            done = step * sizes.memory_step
            assert tally(url)[::3] == [done * len(place.shortest), done], tally(url)
            held.append(resident(process))
            print(f"memory after {done:7,} sessions: {held[-1]:.1f} MB")
    grown = held[-1] - held[0]
    report["memory_mb"], report["memory_growth_mb"] = round(held[0], 1), round(grown, 2)
    print(f"{grown:+.2f} MB, {100 * grown / held[0]:+.1f} %, over {5 * sizes.memory_step:,} sessions")


def resident(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round of each: does it run?")
    options = parser.parse_args()
    sizes = Sizes(1, 50, 5000, 500, 1000) if options.quick else Sizes(options.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers end with it
    report: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="frugal-steps-") as folder, place(Path(folder), set(options.only)) as ready_place:
        print(f"{CLIENTS} clients; a session is {len(ready_place.longest)} answers, a round {sizes.sessions:,} sessions")
        for part in PARTS:
            if part not in options.only:
                continue
            if part in ENGINES:
                beside_bare(ready_place, part, sizes, report)
            else:
                {"many": many, "workers": workers, "predict": predicting, "memory": memory}[part](ready_place, sizes, report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
