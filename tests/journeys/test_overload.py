"""More clients than a server takes: some are told at once to come again, nobody waits for ever, and nothing is charged twice."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.databases import rows
from tests.examples import clinic, wide
from tests.journeys.processes import Server, serving
from tests.raw import seconds_to_live
from tests.service.conftest import publish

QUEUE = 4
THREADS = 16  # for work with the database
CLIENTS = 40


@pytest.fixture
def crowded(database_url: str, tmp_path: Path) -> Iterator[Server]:
    """A server with a short queue, and the clinic."""
    with serving(tmp_path, database_url, FRUGAL_MAX_QUEUE=str(QUEUE), FRUGAL_POOL="2") as server, server.client() as client:
        publish(client, "clinic", clinic())
        publish(client, "wide", wide(20))
        yield server


@contextmanager
def held(url: str) -> Iterator[None]:
    """Nobody can write sessions for as long as this lasts."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            connection.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
            yield
    else:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
        finally:
            connection.close()


def opened(client: httpx.Client, count: int) -> list[str]:
    return [client.post("/v1/sessions", json={"model": "wide"}).json()["id"] for _ in range(count)]


def problem_of(reply: httpx.Response) -> str | None:
    return None if reply.status_code < 400 else reply.json()["type"].rpartition(":")[2]


def told_at_once(server: Server, route: str) -> int:
    """How many requests to a route were 503 within a second, by the server's own clock."""
    lines = [json.loads(line) for line in server.said.splitlines() if line.startswith("{")]
    return sum(line.get("route") == route and line["status"] == 503 and line["ms"] < 1000 for line in lines)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_past_the_queue_a_step_is_told_at_once_to_come_again(crowded: Server, database_url: str) -> None:
    with crowded.client() as client, ThreadPoolExecutor(CLIENTS) as pool:
        ids = opened(client, CLIENTS)

        def answer(id: str) -> httpx.Response:
            return client.post(f"/v1/sessions/{id}/answers", json={"feature": "f0", "value": 1})

        with held(database_url):
            waiting = [pool.submit(answer, id) for id in ids]
            until(lambda: told_at_once(crowded, "/v1/sessions/{id}/answers") >= CLIENTS - 2 * QUEUE - 2)  # the rest wait, or are at it
            assert seconds_to_live(crowded.port) < 2
        replies = [each.result() for each in waiting]
        assert {problem_of(reply) for reply in replies} <= {"busy", "database-away", None}
        refused = [reply for reply in replies if problem_of(reply) == "busy"]
        assert len(refused) >= CLIENTS - 2 * QUEUE - 2
        assert all(reply.headers["retry-after"] == "1" for reply in refused)
        for id in ids:  # sent again it is done, and charged once
            again = answer(id)
            assert (again.status_code, again.json()["spent"]) == (200, 1.0)
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(CLIENTS, CLIENTS * 1_000_000)]


def test_past_the_queue_other_work_is_told_at_once_too(crowded: Server, database_url: str) -> None:
    """Openings ask in threads what a name means; here nobody can read that."""
    with crowded.client() as client, ThreadPoolExecutor(CLIENTS) as pool:
        with unreadable(database_url) as holds:
            if not holds:
                pytest.skip("readers of an SQLite file never wait")
            waiting = [pool.submit(client.get, "/v1/models") for _ in range(CLIENTS)]
            until(lambda: told_at_once(crowded, "/v1/models") >= CLIENTS - THREADS - QUEUE)
            assert seconds_to_live(crowded.port) < 2
        assert {problem_of(each.result()) for each in waiting} <= {"busy", "database-away", None}
        assert client.get("/v1/models").status_code == 200


@contextmanager
def unreadable(url: str) -> Iterator[bool]:
    """Nobody can read versions for as long as this lasts; False where that cannot be."""
    if not url.startswith("postgresql"):
        yield False
        return
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE versions IN ACCESS EXCLUSIVE MODE")
        yield True


def test_predictions_wait_in_a_queue_that_ends(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'frugal.db'}"
    body = json.dumps({"model": "wide", "rows": [{f"f{i}": 1 for i in range(20)}] * 3000})
    with serving(tmp_path, database, FRUGAL_MAX_QUEUE="1") as server, server.client() as client, ThreadPoolExecutor(CLIENTS) as pool:
        publish(client, "wide", wide(20))
        headers = {"Content-Type": "application/json"}
        replies = list(pool.map(lambda _: client.post("/v1/predict", content=body, headers=headers), range(3 * CLIENTS)))
        assert {problem_of(reply) for reply in replies} == {"busy", None}
        assert all(len(reply.json()["rows"]) == 3000 for reply in replies if reply.status_code == 200)
        assert seconds_to_live(server.port) < 2


def test_a_crowd_is_served_or_told_to_come_again_and_charged_once(crowded: Server, database_url: str) -> None:
    """Forty clients on a queue of four, each sending its step again until it is taken."""
    slowest: list[float] = []

    def look() -> None:
        while not over.is_set():
            slowest.append(seconds_to_live(crowded.port))
            over.wait(0.05)

    over = threading.Event()
    with crowded.client() as client, ThreadPoolExecutor(CLIENTS + 1) as pool:
        ids = opened(client, CLIENTS)

        def play(id: str) -> list[str | None]:
            said = []
            for step in range(10):
                while True:
                    reply = client.post(f"/v1/sessions/{id}/answers", json={"feature": f"f{step}", "value": 1})
                    said.append(problem_of(reply))
                    if reply.status_code == 200:
                        break
                    assert reply.headers["retry-after"] == "1"
            return said

        looking = pool.submit(look)
        try:
            said = [word for played in pool.map(play, ids) for word in played]
        finally:
            over.set()
        looking.result()
        assert set(said) <= {None, "busy"}
        assert said.count(None) == 10 * CLIENTS
        assert client.get("/readyz").status_code == 200
    assert max(slowest) < 5
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(10 * CLIENTS, 10 * CLIENTS * 1_000_000)]
    assert rows(database_url, "SELECT sum(spent) FROM sessions") == [(10 * CLIENTS * 1_000_000,)]
