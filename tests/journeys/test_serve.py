"""Journeys with real processes: the first minute, crashes, two servers on one database, stopping."""

import contextlib
import itertools
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.databases import PostgresServer, rows
from tests.examples import clinic, wide
from tests.journeys.crashing import crash, own_postgresql, restart
from tests.journeys.processes import Server, frugal, serving, starting
from tests.service.conftest import publish

CLIENTS = 8
ENOUGH = 100  # answers that are stored before the server is killed under its load
UNEVEN = "SELECT count(*) FROM sessions s WHERE spent <> (SELECT coalesce(sum(cost), 0) FROM answers a WHERE a.session_id = s.id)"


class TracebackError(Exception):
    """Nobody expected this: a process should have ended with a sentence, or a reply should have said what is wrong."""


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables; on SQLite not even a file."""
    if request.param == "sqlite":
        yield sqlite(tmp_path)
    else:
        with request.getfixturevalue("postgres").fresh("template1") as url:
            yield url


@pytest.fixture
def postgresql(postgres: PostgresServer) -> Iterator[str]:
    with postgres.fresh("template1") as url:
        yield url


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder / 'new' / 'frugal.db'}"


def curl_lines(server: Server) -> list[str]:
    """What is printed once the server listens, which may be a moment after it does."""
    end = time.monotonic() + 30
    while server.said.count("curl") < 3 and time.monotonic() < end:
        time.sleep(0.02)
    return [line for line in server.said.splitlines() if "curl" in line]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the lines are for curl, and there is none here")
def test_from_nothing_to_a_prediction_in_three_lines(database: str, tmp_path: Path) -> None:
    with serving(tmp_path, database, "--example") as server:
        lines = curl_lines(server)
        assert len(lines) == 3
        assert f"frugal: listening on {server.url} " in server.said.partition(lines[0])[0]
        assert "frugal: published heart:1: error 0." in server.said
        shell = subprocess.run(["bash"], input="\n".join(lines), capture_output=True, text=True, timeout=60)
    opened, answered, finished = json_values(shell.stderr + shell.stdout)
    assert (opened["status"], answered["id"], finished["id"]) == ("open", opened["id"], opened["id"])
    assert 0 < finished["spent"] <= 60
    assert (finished["status"], finished["prediction"]["final"]) == ("done", True)
    assert finished["prediction"]["label"] in ("absent", "present")


def test_the_example_is_published_once(database: str, tmp_path: Path) -> None:
    shown = database.replace("postgres:@", "postgres@")  # no password, not even that it is empty
    first = frugal("migrate", "--example", "--database", database)
    assert first.returncode == 0, first.stderr
    assert f"{shown} is at this release's tables\npublished heart:1: error 0." in first.stdout
    again = frugal("migrate", "--example", "--database", database)
    assert (again.returncode, again.stdout) == (0, f"{shown} is at this release's tables\nmodel heart:1 is there already\n")
    with serving(tmp_path, database, "--example") as server:
        assert "frugal: model heart:1 is there already\n" in server.said
        assert httpx.get(f"{server.url}/v1/models").json()["items"][0]["versions"][0]["version"] == 1


def test_a_server_on_any_free_port_says_which(tmp_path: Path) -> None:
    with starting(tmp_path, sqlite(tmp_path), "--example", "--port", "0") as server:
        lines = curl_lines(server)
        url = lines[0].split("curl", 1)[1].split("/v1/")[0].rpartition(" ")[2]
        assert f"frugal: listening on {url} " in server.said
        assert httpx.get(f"{url}/livez").status_code == 200


def test_with_two_workers_the_lines_come_when_one_listens(postgresql: str, tmp_path: Path) -> None:
    with starting(tmp_path, postgresql, "--example", "--workers", "2") as server:
        assert len(curl_lines(server.ready())) == 3
        assert httpx.post(f"{server.url}/v1/sessions", json={"model": "heart"}).status_code == 201


def test_no_lines_are_printed_that_would_need_a_key(tmp_path: Path) -> None:
    made = frugal("keys", "create", "--owner", "ops", "--role", "admin", "--database", sqlite(tmp_path))
    assert made.returncode == 0, made.stderr
    with serving(tmp_path, sqlite(tmp_path), "--example") as server:
        while "frugal: listening on" not in server.said:
            time.sleep(0.02)
        assert "curl" not in server.said


def test_a_busy_port_is_told_before_anything_is_done(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = frugal("serve", "--example", "--database", sqlite(tmp_path), FRUGAL_PORT=str(port), MAKELEVEL="1")
    assert refused.returncode == 2
    assert re.fullmatch(rf"frugal: Port {port} is in use\. Choose another: FRUGAL_PORT=\d+ make run\n", refused.stderr)
    assert not list((tmp_path / "new").glob("*.db"))


def test_a_variable_that_nothing_reads_is_told_with_the_one_that_was_meant(tmp_path: Path) -> None:
    with serving(tmp_path, sqlite(tmp_path), FRUGAL_SESION_TTL="60", FRUGAL_ZZZ="1") as server:
        assert "frugal: FRUGAL_SESION_TTL is not a setting and is ignored: did you mean FRUGAL_SESSION_TTL?\n" in server.said
        assert "frugal: FRUGAL_ZZZ is not a setting and is ignored: README.md lists the settings\n" in server.said


def json_values(text: str) -> list[Any]:
    """JSON values written one after the other."""
    found, at = [], 0
    while at < len(text):
        value, at = json.JSONDecoder().raw_decode(text, at)
        found.append(value)
    return found


@dataclass
class Case:
    """A session as its client knows it."""

    key: str
    budget: float | None
    id: str | None = None
    acknowledged: dict[str, float] = field(default_factory=dict)  # what each answer cost
    sent: str | None = None  # the feature whose answer is on its way

    def open(self, client: httpx.Client) -> dict[str, Any]:
        reply = client.post("/v1/sessions", json={"model": "wide", "budget": self.budget}, headers={"Idempotency-Key": self.key})
        self.id = acknowledged(reply, 201)["id"]
        return reply.json()

    def answer(self, client: httpx.Client, feature: str) -> dict[str, Any]:
        self.sent = feature
        session = acknowledged(client.post(f"/v1/sessions/{self.id}/answers", json={"feature": feature, "value": 1}), 200)
        self.acknowledged[feature] = {line["feature"]: line["cost"] for line in session["answers"]}[feature]
        self.sent = None
        return session


class AwayError(Exception):
    """The service says that its database does not answer."""


def acknowledged(reply: httpx.Response, status: int) -> dict[str, Any]:
    if reply.status_code == 503:
        assert (reply.json()["type"], reply.headers["retry-after"]) == ("urn:frugal:problem:database-away", "1")
        raise AwayError
    if reply.status_code == 500:
        raise TracebackError(reply.text)
    assert reply.status_code == status, reply.text
    return reply.json()


@pytest.mark.parametrize(("database", "workers"), [("sqlite", "1"), ("postgresql", "1"), ("postgresql", "2")], indirect=["database"])
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(database: str, workers: str, tmp_path: Path) -> None:
    with serving(tmp_path, database, "--workers", workers) as server, ThreadPoolExecutor(CLIENTS) as threads:
        with server.client() as client:
            publish(client, "wide", wide(40))
        held = [threads.submit(hold_sessions, server.client(), number) for number in range(CLIENTS)]
        until_stored(database, ENOUGH)
        server.kill()
        cases = [case for cases in held for case in cases.result()]
    assert sum(len(case.acknowledged) for case in cases) > 50
    assert any(case.sent for case in cases)
    with serving(tmp_path, database) as server, server.client() as client:
        for case in cases:
            resume(client, case)
    assert rows(database, UNEVEN) == [(0,)]
    assert rows(database, "SELECT count(*) FROM sessions") == [(len(cases),)]


def until_stored(database: str, answers: int) -> None:
    while rows(database, "SELECT count(*) FROM answers")[0][0] < answers:
        time.sleep(0.05)


def hold_sessions(client: httpx.Client, number: int) -> list[Case]:
    """One session after the other, until the server or its database is gone."""
    cases: list[Case] = []
    with client, contextlib.suppress(httpx.TransportError, AwayError):
        for n in itertools.count():
            cases.append(Case(f"{number}-{n}", [None, 17.5][n % 2]))
            session = cases[-1].open(client)
            while session["ask"]:
                session = cases[-1].answer(client, session["ask"]["feature"])
    return cases


def resume(client: httpx.Client, case: Case) -> None:
    """All that was acknowledged is there, the answer on its way is charged once, and the session goes on."""
    if case.id is None:
        case.open(client)
    session = client.get(f"/v1/sessions/{case.id}").json()
    stored = {line["feature"]: line["cost"] for line in session["answers"]}
    assert case.acknowledged.items() <= stored.items()
    assert set(stored) - set(case.acknowledged) <= {case.sent}
    assert session["spent"] == sum(stored.values())
    if case.sent is not None:
        session = case.answer(client, case.sent)
    if session["ask"] is not None:
        session = case.answer(client, session["ask"]["feature"])
    assert case.acknowledged == {line["feature"]: 1.0 for line in session["answers"]}
    assert session["spent"] == len(session["answers"])


def test_kill_9_of_postgresql_is_told_as_such_and_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with own_postgresql() as postgresql, serving(tmp_path, postgresql.url("migrated")) as server, server.client() as client:
        publish(client, "wide", wide(40))
        with ThreadPoolExecutor(CLIENTS) as threads:
            held = [threads.submit(hold_sessions, server.client(), number) for number in range(CLIENTS)]
            until_stored(postgresql.url("migrated"), ENOUGH)
            crash(postgresql)
            cases = [case for cases in held for case in cases.result()]
        away = client.get("/v1/models")
        assert (away.status_code, away.headers["retry-after"]) == (503, "1")
        assert client.get("/readyz").json()["checks"]["database"] == "database-away"
        restart(postgresql)
        for case in cases:
            resume(client, case)
        assert rows(postgresql.url("migrated"), UNEVEN) == [(0,)]
        assert client.get("/readyz").status_code == 200


def test_several_workers_on_sqlite_are_refused(tmp_path: Path) -> None:
    refused = frugal("serve", "--port", "0", "--workers", "2", "--database", sqlite(tmp_path))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("frugal: 2 workers need PostgreSQL")
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_an_sqlite_file_has_one_process_until_that_is_gone(tmp_path: Path) -> None:
    url = sqlite(tmp_path)
    with serving(tmp_path, url) as first:
        for command in (["serve", "--port", "0"], ["migrate"]):
            refused = frugal(*command, "--database", url)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert f"is in use by process {first.process.pid}:" in refused.stderr.splitlines()[-1]
        assert httpx.get(f"{first.url}/readyz").status_code == 200
        first.kill()
        with serving(tmp_path, url) as second:
            assert httpx.get(f"{second.url}/livez").status_code == 200


def test_of_two_servers_started_at_once_on_an_sqlite_file_one_says_why_it_will_not_start(tmp_path: Path) -> None:
    with starting(tmp_path, sqlite(tmp_path)) as one, starting(tmp_path, sqlite(tmp_path)) as two:
        while one.process.poll() is None and two.process.poll() is None:
            time.sleep(0.1)
        loser, winner = (one, two) if two.process.poll() is None else (two, one)
        winner.ready()
        if "Traceback" in loser.said:
            raise TracebackError(loser.said)
        assert loser.process.returncode == 2
        assert f"is in use by process {winner.process.pid}:" in loser.said.splitlines()[-1]


def test_two_servers_started_at_once_on_an_empty_postgresql_both_come_up(postgresql: str, tmp_path: Path) -> None:
    with two_servers(tmp_path, postgresql) as (one, two):
        publish(one, "clinic", clinic())
        assert two.post("/v1/sessions", json={"model": "clinic"}).status_code == 201


@contextlib.contextmanager
def two_servers(folder: Path, database: str) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Clients of two servers that were started at the same moment."""
    with (
        starting(folder, database) as one,
        starting(folder, database) as two,
        one.ready().client() as first,
        two.ready().client() as second,
    ):
        yield first, second


def test_an_alias_that_moves_is_seen_by_every_process(postgresql: str, tmp_path: Path) -> None:
    with two_servers(tmp_path, postgresql) as (here, there):
        publish(here, "clinic", clinic(), alias="live")
        publish(here, "clinic", wide(3))
        before = [opened(client) for client in (here, there)]
        assert [session["model"]["version"] for session in before] == [1, 1]
        assert here.put("/v1/admin/models/clinic/aliases/live", json={"version": 2}).status_code == 200
        while (seen := opened(there)["model"]["version"]) == 1:
            time.sleep(0.1)
        assert seen == 2
        assert opened(here)["model"]["version"] == 2
        for session, client in zip(before, (there, here), strict=True):  # each through the other process
            reply = client.post(f"/v1/sessions/{session['id']}/answers", json={"feature": "fever", "value": "yes"})
            assert (reply.json()["model"]["version"], reply.json()["ask"]["feature"]) == (1, "sugar")


def opened(client: httpx.Client) -> dict[str, Any]:
    reply = client.post("/v1/sessions", json={"model": "clinic@live"})
    assert reply.status_code == 201, reply.text
    return reply.json()


@pytest.mark.parametrize(
    ("database", "workers"),
    [
        ("sqlite", "1"),
        ("postgresql", "1"),
        ("postgresql", "2"),
    ],
    indirect=["database"],
)
def test_sigterm_lets_a_request_in_flight_finish(database: str, workers: str, tmp_path: Path) -> None:
    with serving(tmp_path, database, "--workers", workers) as server:
        with server.client() as client:
            publish(client, "clinic", clinic())
        with half_an_opening(server.port) as (connection, rest):
            server.terminate()
            time.sleep(0.5)
            assert server.process.poll() is None, server.said
            connection.sendall(rest)
            reply = connection.makefile("rb").read()
        assert reply.startswith(b"HTTP/1.1 201 "), reply
        server.wait()
    assert rows(database, "SELECT count(*) FROM sessions") == [(1,)]


@contextlib.contextmanager
def half_an_opening(port: int) -> Iterator[tuple[socket.socket, bytes]]:
    """A request of which the server has the first half, and the rest of it."""
    body = json.dumps({"model": "clinic"}).encode()
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.encode() + body[:5])
        time.sleep(0.3)
        yield connection, body[5:]


def test_where_something_else_migrates_a_database_without_tables_is_refused(database: str) -> None:
    refused = frugal("serve", "--port", "0", "--database", database, FRUGAL_MIGRATE="never")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[-1].endswith("FRUGAL_MIGRATE is never: run frugal migrate")
