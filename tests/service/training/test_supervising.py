"""The supervising loop with real children and a database that fails in between, on both databases."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway
from frugal.service.registry.versions import read_ensemble
from frugal.service.store import archives
from frugal.service.store import job_rows as stored
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database, open_database
from frugal.service.tables import read_file
from frugal.service.training import datasets, jobs, priority, supervising
from frugal.service.training.process import Child
from frugal.service.training.spec import Spec
from frugal.service.training.supervising import Supervisor
from tests.busy import burning, one_processor
from tests.databases import rows

HEART = Path(__file__).parents[3] / "examples" / "heart" / "heart.csv"
ME = Actor("me")
SPEC = Spec("heart", "disease", "budget-forest", {"max_trees": 3}, publish={"name": "heart", "alias": None})


class Failing:
    """A database whose every other write fails: before it is done, or after, when nobody can know."""

    def __init__(self, database: Database, after: bool) -> None:
        self.database, self.after, self.writes = database, after, 0

    def read(self, work: Callable[[Connection], Any]) -> Any:
        return self.database.read(work)

    def write(self, work: Callable[[Connection], Any]) -> Any:
        self.writes += 1
        fails = self.writes % 2 == 0
        if fails and not self.after:
            raise DatabaseAway()
        done = self.database.write(work)
        if fails:
            raise DatabaseAway()
        return done

    def close(self) -> None:
        self.database.close()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(Settings(database=database_url))
    yield database
    database.close()


@contextmanager
def training(database: Any, **settings: Any) -> Iterator[Supervisor]:
    supervisor = Supervisor(database, Settings(**settings))
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        yield supervisor
    finally:
        supervisor.stop.set()
        thread.join()


def submit(database: Database) -> Any:
    datasets.store(database, ME, "heart", read_file(HEART), 1, None)
    return jobs.submit(database, ME, SPEC)[0].id


def until(happened: Callable[[], Any], patience: float = 200) -> Any:
    """What it gives, as soon as that is something."""
    end = time.monotonic() + patience
    while not (found := happened()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def over(database: Database, id: Any) -> Any:
    until(lambda: jobs.read(database, id).status not in ("queued", "running"))
    return jobs.read(database, id)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_job_is_done_once_though_every_other_write_fails(
    database: Database, database_url: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "RETRY", 0.05)
    monkeypatch.setattr(supervising, "POLL", 0.1)
    id = submit(database)
    with training(Failing(database, after)):
        done = over(database, id)
    assert done.status == "done", done.failure
    assert rows(database_url, "SELECT count(*) FROM versions") == [(1,)]
    assert rows(database_url, "SELECT count(*) FROM archives") == [(2,)]  # the table and the model: nothing is left over
    assert len(read_ensemble(database, "heart", 1)) == 3  # and its bytes are whole


def test_a_child_that_is_stopped_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "HUNG", 2.0)
    id = submit(database)
    stopped: list[int] = []

    class Stopping(supervising.Training):
        def _attend(self) -> None:
            if not stopped:
                stopped.append(self.child.pid)
                os.kill(self.child.pid, signal.SIGSTOP)
            super()._attend()

    monkeypatch.setattr(supervising, "Training", Stopping)
    with training(database):
        done = over(database, id)
    assert (done.status, done.attempts) == ("done", 2)
    assert not Path(f"/proc/{stopped[0]}").exists()
    assert "the process that trained it hung" in told(database, id)


BEATS = """
import sys, time
from frugal.service.training import frames
frames.receive(sys.stdin.buffer)
while True:
    frames.send(sys.stdout.buffer, frames.PROGRESS, {"phase": "growing", "fraction": 0.5, "trees": 3, "mean_cost": None})
    time.sleep(1)
"""


class Beating(Child):
    """It says every second where it is, and comes no further: it waits for something that never comes."""

    command = (sys.executable, "-c", BEATS)


def test_a_child_that_only_says_that_it_is_there_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat is no sign of life: it is neither progress, nor processor time worth the name, nor waiting for a processor."""
    monkeypatch.setattr(supervising, "HUNG", 4.0)
    kinds = iter([Beating])
    monkeypatch.setattr(supervising, "Child", lambda: next(kinds, Child)())
    id = submit(database)
    with training(database):
        done = over(database, id)
    assert (done.status, done.attempts) == ("done", 2)
    assert "the process that trained it hung" in told(database, id)


def told(database: Database, id: Any) -> list[str]:
    """Why the job was queued again, each time."""
    events = database.read(lambda db: stored.events_after(db, id, 0, 1000))
    return [event.data["why"] for event in events if "why" in event.data]


def test_a_training_that_starves_gets_its_turns_and_is_done(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor that others keep busy it waits far longer than what hangs may sleep."""
    monkeypatch.setattr(supervising, "HUNG", 2.0)
    monkeypatch.setattr(supervising, "Child", starving)
    risen: list[int] = []
    rise = priority.rise
    monkeypatch.setattr(priority, "rise", lambda pid: (risen.append(pid), rise(pid))[1])
    id = submit(database)
    with burning(one_processor()), training(database):
        done = over(database, id)
    assert (done.status, done.attempts, told(database, id)) == ("done", 1, [])
    assert risen


def starving() -> Child:
    child = Child()
    os.sched_setaffinity(child.pid, {one_processor()})
    return child


# The table on its way


def test_a_fetch_that_outlasts_the_lease_loses_no_attempt(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    id, fetch, others = submit(database), archives.fetch_chunks, []

    def slow(db: Connection, archive: Any) -> Iterator[bytes]:
        ends = jobs.read(database, id).lease_until
        until(lambda: database.read(stored.clock) > ends)
        others.append(jobs.claim(database, 3.0))
        yield from fetch(db, archive)

    monkeypatch.setattr(archives, "fetch_chunks", slow)
    with training(database, lease=3.0):
        done = over(database, id)
    assert (done.status, done.attempts, others) == ("done", 1, [None])


def endless(begun: threading.Event) -> Callable[[Connection, Any], Iterator[bytes]]:
    def fetch(db: Connection, archive: Any) -> Iterator[bytes]:
        while True:
            begun.set()
            time.sleep(0.01)
            yield b""

    return fetch


def test_a_fetch_is_broken_off_where_the_worker_stops(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    id, begun = submit(database), threading.Event()
    monkeypatch.setattr(archives, "fetch_chunks", endless(begun))
    with training(database):
        assert begun.wait(100)
    job = jobs.read(database, id)
    assert (job.status, job.attempts) == ("queued", 0)


def test_a_fetch_is_broken_off_where_the_job_is_cancelled(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    id, begun, fetch = submit(database), threading.Event(), archives.fetch_chunks
    monkeypatch.setattr(archives, "fetch_chunks", endless(begun))
    with training(database):
        assert begun.wait(100)
        monkeypatch.setattr(archives, "fetch_chunks", fetch)
        jobs.cancel(database, ME, id)
        assert over(database, jobs.submit(database, ME, SPEC)[0].id).status == "done"  # so it has left the first one


def test_a_table_that_is_damaged_fails_its_job(database: Database) -> None:
    id = submit(database)
    database.write(lambda db: db.execute(text("UPDATE archives SET sha256 = 'x'")))
    with training(database):
        failed = over(database, id)
    assert (failed.status, failed.attempts) == ("failed", 3)
    assert "its table could not be fetched" in failed.failure


def test_who_has_no_table_has_no_child(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []
    claim = jobs.claim
    monkeypatch.setattr(jobs, "claim", lambda *given: (looks.append(given), claim(*given))[1])
    with training(database) as supervisor:
        until(lambda: len(looks) >= 3)
        assert supervisor._spare is None
        datasets.store(database, ME, "heart", read_file(HEART), 1, None)
        spare = until(lambda: supervisor._spare)
    assert not spare.alive
