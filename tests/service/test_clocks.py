"""What is over is over by the database's clock: a process whose own clock is an hour wrong changes nothing, on both databases."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from frugal.service.config import Settings
from frugal.service.errors import InvalidRequest, Problem
from frugal.service.keyform import digest
from frugal.service.owners import issuing as keys
from frugal.service.owners.lookup import Keys
from frugal.service.sessions import clock as clock_module
from frugal.service.sessions.clock import Clock, keep_right, seconds
from frugal.service.sessions.ledger import IdempotencyKey
from frugal.service.sessions.state import Given
from frugal.service.sessions.steps import Opening, Steps
from frugal.service.store import tables
from frugal.service.store.clock import clock
from frugal.service.store.db import Database, open_database
from frugal.service.store.key_rows import any_admin
from frugal.service.tables import Reader
from frugal.service.training import datasets, jobs
from frugal.service.training.spec import Spec
from tests.databases import rows
from tests.examples import clinic
from tests.service.sessions.using import ME, with_steps

HOUR = timedelta(hours=1)
MINUTES = timedelta(minutes=30)
NEAR = timedelta(minutes=5)  # what a busy machine may take


@pytest.fixture(params=[HOUR, -HOUR], ids=["fast", "slow"])
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> timedelta:
    """The process's clock is wrong by this."""
    set_wrong(monkeypatch, request.param)
    return request.param


def set_wrong(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + by

    monkeypatch.setattr(tables, "datetime", Wrong)
    assert abs(tables.now() - datetime.now(UTC) - by) < NEAR


@pytest.fixture
def database(database_url: str, wrong: timedelta) -> Iterator[Database]:
    database = open_database(Settings(database=database_url))
    yield database
    database.close()


def told(database: Database) -> datetime:
    return database.read(clock)


def test_the_databases_clock_is_not_the_processs(database: Database) -> None:
    assert abs(told(database) - datetime.now(UTC)) < NEAR


def test_the_clock_is_the_databases_even_where_that_is_wrong(database_url: str) -> None:
    """Its own function for the time is replaced by one that tells another year."""

    def ask(db: Connection) -> datetime:
        if db.dialect.name == "postgresql":
            db.execute(text("CREATE SCHEMA wrong"))
            db.execute(
                text("CREATE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2040-01-01Z' $$")
            )
            db.execute(text("SET LOCAL search_path = wrong, pg_catalog, public"))
        else:
            db.connection.driver_connection.create_function("strftime", -1, lambda *_: "2040-01-01T00:00:00.000")
        return clock(db)

    database = open_database(Settings(database=database_url))
    assert database.write(ask) == datetime(2040, 1, 1, tzinfo=UTC)
    database.close()


def test_a_session_lasts_as_long_as_the_database_says(database_url: str, wrong: timedelta) -> None:
    async def work(steps: Steps) -> None:
        opened = (await steps.open("me", Opening("clinic"), IdempotencyKey("k", "0" * 64))).session
        for moment in (opened.created_at, opened.updated_at, opened.expires_at - MINUTES):
            assert abs(moment - told(steps.database)) < NEAR
        await steps.sweep()
        steps._recent.clear()
        answered = await steps.answer("me", opened.id, [Given("fever", "value", "yes")])
        assert answered.session.status == "open"
        assert abs(answered.session.answers[0].at - told(steps.database)) < NEAR
        assert (await steps.page("me", None, 10, None))[0][0].session.status == "open"
        assert (await steps.open("me", Opening("clinic"), IdempotencyKey("k", "0" * 64))).session.id == opened.id  # the key is still known

    with_steps(database_url, work, {"clinic": clinic()}, ttl=MINUTES.seconds)


@pytest.mark.parametrize("way", ["read", "answer", "recent", "page", "sweep", "finish"])
def test_a_session_is_over_when_the_database_says(database_url: str, wrong: timedelta, way: str) -> None:
    async def work(steps: Steps) -> None:
        id = (await steps.open("me", Opening("clinic"))).session.id
        past = told(steps.database) - timedelta(minutes=1)
        if way == "recent":
            steps._recent[id] = steps._recent[id]._replace(expires_at=past)
        else:
            steps._recent.clear()
        steps.database.write(lambda db: db.execute(tables.sessions.update().values(expires_at=past)))
        if way in ("answer", "recent"):
            with pytest.raises(Problem, match=r"over \(expired\)"):
                await steps.answer("me", id, [Given("fever", "value", "yes")])
        elif way == "page":
            await steps.page("me", None, 10, None)
        elif way == "sweep":
            await steps.sweep()
        else:
            await getattr(steps, way)("me", id)
        assert rows(database_url, "SELECT status, spent FROM sessions") == [("expired", 0)]

    with_steps(database_url, work, {"clinic": clinic()})


def test_a_clock_that_jumps_under_a_running_process_moves_nothing(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(steps: Steps) -> None:
        id = (await steps.open("me", Opening("clinic"))).session.id
        for by in (HOUR, -HOUR, 30 * HOUR):
            set_wrong(monkeypatch, by)
            assert abs(steps.ledger.now() - told(steps.database)) < NEAR
            await steps.ledger.ping()
            assert abs(steps.ledger.now() - told(steps.database)) < NEAR
            await steps.sweep()
        assert (await steps.read("me", id)).session.status == "open"

    with_steps(database_url, work, {"clinic": clinic()}, ttl=MINUTES.seconds)


def test_what_is_kept_for_a_day_or_for_its_retention_is_kept_by_the_database(database_url: str, wrong: timedelta) -> None:
    over = {"status": "done", "prediction": '{"label": "well", "probabilities": {}, "votes": {}, "reason": "stopped"}'}

    async def work(steps: Steps) -> None:
        for hours in (23.5, 24.5):
            id = (await steps.open("me", Opening("clinic"), IdempotencyKey(f"{hours}", "0" * 64))).session.id
            at = told(steps.database) - timedelta(hours=hours)
            aged = tables.idempotency_keys.update().where(tables.idempotency_keys.c.session_id == id).values(created_at=at)
            ended = tables.sessions.update().where(tables.sessions.c.id == id).values(expires_at=at, **over)
            steps.database.write(lambda db, aged=aged, ended=ended: (db.execute(aged), db.execute(ended)))
        await steps.sweep()
        assert rows(database_url, "SELECT key FROM idempotency_keys") == [("23.5",)]
        assert rows(database_url, "SELECT count(*) FROM sessions") == [(1,)]

    with_steps(database_url, work, {"clinic": clinic()}, retention=24 * 3600)


def submitted(database: Database) -> Any:
    with Reader() as reader:
        reader.feed(b"age,colour,sick\n" + b"31,red,no\n40,blue,yes\n" * 10)
        datasets.store(database, ME, "small", reader.finish(), 100, None)
    asked = Spec(dataset="small", label="sick", learner="budget-forest", publish={"name": "small", "alias": None})
    return jobs.submit(database, ME, asked, ("key", "hash"))[0]


def until(database: Database) -> datetime:
    found: datetime = database.read(lambda db: db.execute(tables.jobs.select())).one().lease_until
    return found


def test_a_lease_lasts_as_long_as_the_database_says(database: Database, wrong: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose clock is wrong holds its job for its lease, no less and no more; another one takes no job that is held."""
    submitted(database)
    claim = jobs.claim(database, MINUTES.total_seconds())
    assert claim is not None
    assert abs(until(database) - told(database) - MINUTES) < NEAR
    assert jobs.claim(database, 1) is None
    jobs.renew(database, claim, 2 * MINUTES.total_seconds(), {}, False)
    assert abs(until(database) - told(database) - 2 * MINUTES) < NEAR
    set_wrong(monkeypatch, -wrong)
    assert jobs.claim(database, 1) is None


def test_a_lease_is_over_when_the_database_says(database: Database) -> None:
    job = submitted(database)
    lost = jobs.claim(database, 30)
    past = told(database) - timedelta(minutes=1)
    database.write(lambda db: db.execute(tables.jobs.update().values(lease_until=past)))
    other = jobs.claim(database, 30)
    assert other is not None
    assert lost is not None
    assert (other.job.id, other.job.attempts) == (job.id, 2)
    jobs.release_all(database)
    assert jobs.claim(database, 30) is not None


def test_a_jobs_idempotency_key_is_kept_by_the_databases_clock(database: Database) -> None:
    submitted(database)
    made = database.read(lambda db: db.execute(tables.idempotency_keys.select())).one().created_at
    assert abs(made - told(database)) < NEAR


def test_a_key_lasts_as_long_as_the_database_says(database: Database) -> None:
    made = keys.create(database, ME, "boss", "admin", told(database) + MINUTES)
    found = Keys(database, None)
    assert asyncio.run(found.find(made["key"])) is not None
    assert database.read(any_admin)
    past = told(database) - timedelta(minutes=1)
    database.write(lambda db: db.execute(tables.keys.update().values(expires_at=past)))
    found.forget()
    assert asyncio.run(found.find(made["key"])) is None
    assert not database.read(any_admin)
    with pytest.raises(InvalidRequest, match="time to come"):
        keys.create(database, ME, "boss", "admin", past)


def test_a_key_is_remembered_no_longer_than_it_lasts(database_url: str) -> None:
    database = open_database(Settings(database=database_url))
    made = keys.create(database, ME, "boss", "admin", told(database) + HOUR)
    found = Keys(database, None)

    def left(of: timedelta) -> tuple[bool, float]:
        database.write(lambda db: db.execute(tables.keys.update().values(expires_at=clock(db) + of)))
        key, seconds_left = found._read(digest(made["key"]))
        return key is not None, seconds_left

    assert left(HOUR) == (True, 5.0)
    there, seconds_left = left(timedelta(seconds=4))
    assert there is (seconds_left <= 4.0)  # SQLite tells milliseconds
    assert left(-HOUR) == (False, 5.0)
    database.close()


def test_a_database_whose_clock_is_set_is_followed() -> None:
    told, heard = Clock(), datetime(2030, 1, 1, tzinfo=UTC)
    for moment in (heard, heard + HOUR, heard - 10 * HOUR):
        told.hear(moment, seconds())
        assert moment <= told.now() < moment + NEAR


def test_time_does_not_go_back_for_a_slow_answer() -> None:
    told, heard = Clock(), datetime(2030, 1, 1, tzinfo=UTC)
    told.hear(heard, seconds())
    before = told.now()
    told.hear(told.now() - timedelta(seconds=1), seconds() - 2)  # it took two seconds, and so may be right
    assert told.now() >= before


def test_the_database_is_asked_again_and_again_though_it_is_away_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "EVERY", 0.001)
    asked: list[int] = []

    async def ask() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt
        raise Problem("away")

    async def main() -> None:
        with pytest.raises(KeyboardInterrupt):
            await keep_right(ask)

    asyncio.run(main())
    assert len(asked) == 3
