"""Journeys of training with real processes: whoever is killed, frozen or cut off, a job is done once or says why not."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from frugal.service.config import LEAST_TRAINING
from tests.databases import PostgresServer, rows
from tests.journeys.crashing import crash, own_postgresql, restart
from tests.journeys.processes import Started, frugal, gone, serving, working

pytestmark = pytest.mark.timeout(900)  # a busy machine trains for long
PATIENCE = 400  # seconds for what comes at once on an idle machine
JOBS = "/v1/admin/training-jobs"
LEASE = {"FRUGAL_LEASE": "3"}
QUICK = {"dataset": "noise", "label": "y", "learner": "budget-forest", "params": {"max_trees": 2}}
LONG = {"dataset": "noise", "label": "y", "learner": "budget-forest", "params": {"max_trees": 1000}}  # some minutes on two cores
SOME = {"dataset": "noise", "label": "y", "learner": "budget-forest", "params": {"max_trees": 60}}  # some seconds


def noise() -> bytes:
    """A table that takes its time to learn, because there is nothing to be learnt."""
    random = np.random.default_rng(0)
    numbers, labels = random.normal(size=(20_000, 6)).round(3), random.integers(0, 2, 20_000)
    lines = (",".join(map(str, row)) + f",{label}" for row, label in zip(numbers.tolist(), labels.tolist(), strict=True))
    return ("a,b,c,d,e,f,y\n" + "\n".join(lines)).encode()


NOISE = noise()


@pytest.fixture
def postgresql(postgres: PostgresServer) -> Iterator[str]:
    with postgres.fresh() as url:
        yield url


@pytest.fixture
def served(postgresql: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A server on PostgreSQL with a table; nobody trains yet."""
    with serving(tmp_path, postgresql) as server, server.client() as client:
        push(client)
        yield client


def push(client: httpx.Client) -> None:
    assert client.post("/v1/admin/datasets", params={"name": "noise"}, content=NOISE).status_code == 201


def submit(client: httpx.Client, job: dict[str, Any]) -> str:
    reply = client.post(JOBS, json=job)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def until(client: httpx.Client, id: str, wanted: Callable[[dict[str, Any]], bool], patience: float = PATIENCE) -> dict[str, Any]:
    end = time.monotonic() + patience
    while True:
        with contextlib.suppress(httpx.TransportError):
            reply = client.get(f"{JOBS}/{id}")
            if reply.status_code == 200 and wanted(reply.json()):
                return dict(reply.json())
        assert time.monotonic() < end, reply.text
        time.sleep(0.05)


def growing(job: dict[str, Any]) -> bool:
    return job["status"] == "running" and (job["progress"] or {}).get("trees", 0) is not None and bool(job["progress"])


def over(job: dict[str, Any]) -> bool:
    return job["status"] not in ("queued", "running")


def child_of(worker: Started) -> int:
    """The one process that trains."""
    end = time.monotonic() + PATIENCE
    while len(found := worker.children()) != 1:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found[0]


def versions(url: str) -> int:
    return int(rows(url, "SELECT count(*) FROM versions")[0][0])


def test_a_worker_killed_in_mid_job_leaves_no_child_and_another_finishes(served: httpx.Client, postgresql: str, tmp_path: Path) -> None:
    id = submit(served, SOME)
    (temporary := tmp_path / "temporary").mkdir()
    with working(tmp_path, postgresql, TMPDIR=str(temporary), **LEASE) as first:
        until(served, id, growing)
        child = child_of(first)
        first.signal(signal.SIGKILL)  # the worker alone: its child must notice by itself
        assert gone(child, PATIENCE)
    assert list(temporary.iterdir()) == []
    assert served.get(f"{JOBS}/{id}").json()["status"] == "running"  # nobody knows yet
    with working(tmp_path, postgresql, **LEASE):
        done = until(served, id, over)
    assert (done["status"], done["attempts"], done["model"]["version"]) == ("done", 2, 1)
    assert versions(postgresql) == 1


def test_a_frozen_worker_that_wakes_up_publishes_nothing(served: httpx.Client, postgresql: str, tmp_path: Path) -> None:
    id = submit(served, SOME)
    with working(tmp_path, postgresql, **LEASE) as frozen:
        until(served, id, growing)
        frozen.signal(signal.SIGSTOP)  # its child trains on, and waits with the model
        with working(tmp_path, postgresql, **LEASE):
            done = until(served, id, over)
            assert (done["status"], done["attempts"]) == ("done", 2)
            assert versions(postgresql) == 1
            frozen.signal(signal.SIGCONT)
            end = time.monotonic() + PATIENCE
            while "was taken over or cancelled" not in frozen.said:
                assert time.monotonic() < end, frozen.said
                time.sleep(0.1)
            assert versions(postgresql) == 1
            after = until(served, id, over)
            assert after == done
        assert rows(postgresql, "SELECT count(*) FROM archives") == [(2,)]  # the table and one model: nothing is left over
        again = until(served, submit(served, QUICK), over)  # it is as good a worker as before
        assert (again["status"], again["attempts"]) == ("done", 1)


def test_cancel_ends_the_child(served: httpx.Client, postgresql: str, tmp_path: Path) -> None:
    id = submit(served, LONG)
    with working(tmp_path, postgresql) as worker:
        until(served, id, growing)
        child = child_of(worker)
        assert served.post(f"{JOBS}/{id}/cancel").json()["status"] == "cancelled"
        assert gone(child, PATIENCE)
        assert versions(postgresql) == 0
        assert until(served, submit(served, QUICK), over)["status"] == "done"


def test_a_worker_that_is_stopped_gives_its_job_back(served: httpx.Client, postgresql: str, tmp_path: Path) -> None:
    id = submit(served, SOME)
    with working(tmp_path, postgresql) as first:
        until(served, id, growing)
        child = child_of(first)
        first.terminate()
        first.wait()
        assert gone(child, PATIENCE)
        job = served.get(f"{JOBS}/{id}").json()
        assert (job["status"], job["attempts"]) == ("queued", 0)
    with working(tmp_path, postgresql):
        assert until(served, id, over)["status"] == "done"


def test_a_child_that_is_killed_three_times_fails_the_job(served: httpx.Client, postgresql: str, tmp_path: Path) -> None:
    id = submit(served, LONG)
    with working(tmp_path, postgresql) as worker:
        for attempt in (1, 2, 3):
            until(served, id, lambda job, attempt=attempt: job["attempts"] == attempt and growing(job))
            os.kill(child_of(worker), signal.SIGKILL)
        failed = until(served, id, over)
    assert (failed["status"], failed["attempts"]) == ("failed", 3)
    assert "3 times" in failed["failure"]
    assert "SIGKILL" in failed["failure"]


def test_a_database_that_goes_away_and_comes_back_costs_nothing(tmp_path: Path) -> None:
    with own_postgresql() as postgresql:
        url = postgresql.url("migrated")
        with serving(tmp_path, url) as server, server.client() as client, working(tmp_path, url, FRUGAL_LEASE="60") as worker:
            push(client)
            id = submit(client, SOME | {"params": {"max_trees": 200}})
            until(client, id, growing)
            child = child_of(worker)
            crash(postgresql)
            assert client.get(f"{JOBS}/{id}").status_code == 503
            time.sleep(3)
            assert not gone(child, 0.1)  # the work goes on
            restart(postgresql)
            done = until(client, id, over)
            assert (done["status"], done["attempts"]) == ("done", 1)
            assert versions(url) == 1


def test_a_server_on_sqlite_killed_with_its_job_goes_on_with_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'frugal.db'}"
    with serving(tmp_path, url) as server, server.client() as client:
        push(client)
        id = submit(client, SOME)
        until(client, id, growing)
        child = child_of(server)
        server.signal(signal.SIGKILL)
        assert gone(child, PATIENCE)
    with serving(tmp_path, url) as server, server.client() as client:  # without waiting for the lease: the file has one process
        done = until(client, id, over)
        assert (done["status"], done["attempts"], done["model"]["version"]) == ("done", 2, 1)
        server.terminate()
        server.wait()


def test_a_server_on_sqlite_that_is_stopped_gives_its_job_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'frugal.db'}"
    with serving(tmp_path, url) as server, server.client() as client:
        push(client)
        id = submit(client, LONG)
        until(client, id, growing)
        child = child_of(server)
        with client.stream("GET", f"{JOBS}/{id}/events") as stream:  # a stream that is open does not keep it from stopping
            server.terminate()
            server.wait()
            stream.read()
        assert gone(child, PATIENCE)
    assert rows(url, "SELECT status, attempts FROM jobs") == [("queued", 0)]


def test_a_training_that_takes_too_long_or_too_much_fails_with_its_limit(served: httpx.Client, postgresql: str, tmp_path: Path) -> None:
    long, large = submit(served, LONG), submit(served, LONG)
    with working(tmp_path, postgresql, FRUGAL_TRAINING_SECONDS="2"):
        failed = until(served, long, over)
        assert "longer than the 2 seconds" in failed["failure"]
    served.post(f"{JOBS}/{large}/cancel")
    large = submit(served, LONG)
    with working(tmp_path, postgresql, FRUGAL_TRAINING_MEMORY=str(LEAST_TRAINING)):
        failed = until(served, large, over)
    assert (failed["status"], failed["attempts"]) == ("failed", 1)
    assert f"{LEAST_TRAINING:,} bytes" in failed["failure"]


def test_a_worker_on_sqlite_is_told_that_none_is_needed(tmp_path: Path) -> None:
    said = frugal("worker", "--database", f"sqlite:///{tmp_path / 'frugal.db'}")
    assert said.returncode == 2
    assert "no worker is needed" in said.stderr
