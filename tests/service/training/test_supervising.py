"""The supervising loop with real children and a database that fails in between, on both databases."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from service.config import Settings
from service.errors import DatabaseAway
from service.reading import read_file
from service.registry.versions import read_ensemble
from service.store.audit import Actor
from service.store.db import Database, open_database
from service.training import datasets, jobs, supervising
from service.training.spec import Spec
from service.training.supervising import Supervisor
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
def training(database: Any) -> Iterator[Supervisor]:
    supervisor = Supervisor(database, Settings())
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


def over(database: Database, id: Any, patience: float = 100) -> Any:
    end = time.monotonic() + patience
    while (row := jobs.read(database, id)).status in ("queued", "running"):
        assert time.monotonic() < end, row
        time.sleep(0.05)
    return row


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_job_is_done_once_though_every_other_write_fails(
    database: Database, database_url: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "RETRY", 0.05)
    monkeypatch.setattr(supervising, "POLL", 0.1)
    id = submit(database)
    with training(Failing(database, after)):
        done = over(database, id)
        time.sleep(0.5)  # for the loop to find out
    assert done.status == "done", done.failure
    assert rows(database_url, "SELECT count(*) FROM versions") == [(1,)]
    assert rows(database_url, "SELECT count(*) FROM archives") == [(2,)]  # the table and the model: nothing is left over
    assert len(read_ensemble(database, "heart", 1)) == 3  # and its bytes are whole


def test_a_child_that_hangs_is_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "HUNG", 2.0)
    id = submit(database)
    stopped = []

    class Stopping(supervising.Training):
        def _attend(self) -> None:
            if not stopped:
                stopped.append(self.child.process.pid)
                self.child.ready = True
                os.kill(self.child.process.pid, signal.SIGSTOP)
            super()._attend()

    monkeypatch.setattr(supervising, "Training", Stopping)
    with training(database):
        done = over(database, id)
    assert (done.status, done.attempts) == ("done", 2)
    assert not Path(f"/proc/{stopped[0]}").exists()


def test_a_table_that_is_damaged_fails_its_job(database: Database) -> None:
    id = submit(database)
    database.write(lambda db: db.execute(text("UPDATE archives SET sha256 = 'x'")))
    with training(database):
        failed = over(database, id)
    assert (failed.status, failed.attempts) == ("failed", 3)
    assert "its table could not be fetched" in failed.failure


def test_who_has_no_table_has_no_child(database: Database) -> None:
    with training(database) as supervisor:
        time.sleep(1)
        assert supervisor._spare is None
        datasets.store(database, ME, "heart", read_file(HEART), 1, None)
        end = time.monotonic() + 30
        while (spare := supervisor._spare) is None:
            assert time.monotonic() < end
            time.sleep(0.02)
    assert not spare.alive
