"""What training forgets, on both databases."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from frugal.models import dump
from frugal.service.config import Settings
from frugal.service.errors import JobNotFound
from frugal.service.registry.describing import describe
from frugal.service.registry.versions import read_ensemble
from frugal.service.store import archives
from frugal.service.store import job_rows as stored
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database, open_database
from frugal.service.store.session_rows import drop_old_keys
from frugal.service.store.tables import iso, now
from frugal.service.tables import Reader
from frugal.service.training import datasets, jobs, sweeping
from frugal.service.training.spec import Spec
from tests.databases import rows
from tests.examples import clinic

ME = Actor("me")
SPEC = Spec("small", "sick", "budget-forest", publish={"name": "small", "alias": None})
DAY = 86_400


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = open_database(Settings(database=database_url))
    with Reader() as reader:
        reader.feed(b"age,colour,sick\n" + b"31,red,no\n40,blue,yes\n" * 10)
        datasets.store(database, ME, "small", reader.finish(), 100, None)
    yield database
    database.close()


def done(database: Database, keyed: jobs.Keyed | None = None) -> Any:
    """A job that published its model just now."""
    id = jobs.submit(database, ME, SPEC, keyed)[0].id
    claim = jobs.claim(database, 30)
    assert claim is not None
    jobs.finish(database, claim, archives.stage(database, dump(clinic())), describe(clinic()), [])
    return id


def ended_before(database: Database, seconds: float) -> None:
    """Let all jobs that are over have ended that long ago."""
    at = now().timestamp() - seconds
    moment = iso(now().fromtimestamp(at).astimezone())
    database.write(lambda db: db.execute(text("UPDATE jobs SET finished_at = :at WHERE finished_at IS NOT NULL"), {"at": moment}))


def sweep(database: Database, **settings: int) -> int:
    """All there is to do; says in how many turns."""
    turns = 1
    while sweeping.sweep(database, Settings(**settings)):
        turns += 1
    return turns


def test_a_job_that_is_over_goes_with_its_events_and_its_version_stays(database: Database, database_url: str) -> None:
    id, waiting = done(database), jobs.submit(database, ME, SPEC)[0].id
    ended_before(database, 2 * DAY)
    sweep(database, job_retention=3 * DAY)
    assert jobs.read(database, id).status == "done"
    sweep(database, job_retention=DAY)
    with pytest.raises(JobNotFound):
        jobs.read(database, id)
    assert rows(database_url, "SELECT count(DISTINCT job_id) FROM job_events") == [(1,)]
    assert jobs.read(database, waiting).status == "queued"
    assert dump(read_ensemble(database, "small", 1)) == dump(clinic())


def test_jobs_are_kept_for_ever_where_that_is_set(database: Database) -> None:
    id = done(database)
    ended_before(database, 10_000 * DAY)
    sweep(database, job_retention=0)
    assert jobs.read(database, id).status == "done"


def test_jobs_that_wait_or_run_stay_however_old(database: Database) -> None:
    ids = [jobs.submit(database, ME, SPEC)[0].id for _ in range(2)]
    assert jobs.claim(database, 30) is not None
    database.write(lambda db: db.execute(text("UPDATE jobs SET created_at = '2001-01-01T00:00:00.000000Z'")))
    sweep(database, job_retention=1)
    assert [jobs.read(database, id).status for id in ids] == ["running", "queued"]


def test_a_turn_takes_away_no_more_than_it_may(database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "AT_ONCE", 4)
    for _ in range(3):
        done(database)  # three events each
    ended_before(database, 2 * DAY)
    left = [9]
    while sweeping.sweep(database, Settings(job_retention=DAY)):
        left.append(rows(database_url, "SELECT count(*) FROM job_events")[0][0])
    assert left == [9, 5, 1, 0, 0]
    assert rows(database_url, "SELECT count(*) FROM jobs") == [(0,)]


def test_a_job_stays_as_long_as_its_idempotency_key(database: Database) -> None:
    id = done(database, ("key", "hash"))
    ended_before(database, 2)
    sweep(database, job_retention=1)
    assert jobs.submit(database, ME, SPEC, ("key", "hash")) == (jobs.read(database, id), True)
    database.write(lambda db: db.execute(text("UPDATE idempotency_keys SET created_at = '2001-01-01T00:00:00.000000Z'")))
    database.write(drop_old_keys)
    sweep(database, job_retention=1)
    with pytest.raises(JobNotFound):
        jobs.read(database, id)


def test_uploads_that_came_to_nothing_go_after_their_time(database: Database, database_url: str) -> None:
    archives.stage(database, b"bytes")
    sweep(database, staged_retention=3600)
    assert rows(database_url, "SELECT count(*) FROM archives") == [(2,)]
    database.write(lambda db: db.execute(text("UPDATE archives SET created_at = '2001-01-01T00:00:00.000000Z'")))
    sweep(database, staged_retention=3600)
    assert rows(database_url, "SELECT count(*) FROM archives") == [(1,)]  # the data set's, though it is as old
    assert database.read(lambda db: stored.listed(db, None, 10, None)) == []
