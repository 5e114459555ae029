"""Many who watch jobs, on both databases: one look serves all, everybody is told everything, and there is a limit."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import Connection

from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway, TooManyWatchers
from frugal.service.store import job_rows as stored
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database, open_database
from frugal.service.tables import Reader
from frugal.service.training import datasets, jobs, watching
from frugal.service.training.spec import Spec
from frugal.service.training.watching import KEPT, LOOK, Watching
from tests.serving import problem, serving

ME = Actor("me")
SPEC = Spec("small", "sick", "budget-forest", publish={"name": "small", "alias": None})
TABLE = b"age,colour,sick\n" + b"31,red,no\n40,blue,yes\n" * 10
PATIENCE = 100  # seconds


class Counting:
    """A database that counts its reads, and can be away."""

    def __init__(self, database: Database) -> None:
        self.database, self.reads, self.away = database, 0, False

    def read(self, work: Callable[[Connection], Any]) -> Any:
        self.reads += 1
        if self.away:
            raise DatabaseAway()
        return self.database.read(work)


@pytest.fixture
def database(database_url: str) -> Iterator[Counting]:
    database = open_database(Settings(database=database_url))
    with Reader() as reader:
        reader.feed(TABLE)
        datasets.store(database, ME, "small", reader.finish(), 100, None)
    yield Counting(database)
    database.close()


def submit(database: Counting) -> UUID:
    """A job with its first event."""
    id: UUID = jobs.submit(database.database, ME, SPEC)[0].id
    return id


def happen(database: Counting, id: UUID, count: int = 1) -> None:
    """So many events more."""

    def add(db: Connection) -> None:
        for _ in range(count):
            stored.add_event(db, id, "progress", {})

    database.database.write(add)


@asynccontextmanager
async def watched(database: Counting, most: int = 1000, stopping: Callable[[], bool] = lambda: False) -> AsyncIterator[Watching]:
    place = Watching(database, most, stopping)  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(PATIENCE):
            yield place
    finally:
        await place.close()


class Watcher:
    """One who has joined, and the numbers of the events told."""

    def __init__(self, place: Watching, database: Counting, id: UUID, after: int = 0) -> None:
        place.join(id, jobs.read(database.database, id).events)
        self.stream, self.told = place.told(id, after), []  # type: ignore[var-annotated]

    async def hear(self, last: int) -> list[int]:
        """Until this event was told, or all were."""
        while (not self.told or self.told[-1] < last) and (part := await anext(self.stream, b"")):
            self.told += [int(line[4:]) for line in part.decode().splitlines() if line.startswith("id: ")]
        return self.told

    async def hear_all(self) -> list[int]:
        return await self.hear(1_000_000)


def test_one_look_serves_all_who_watch(database: Counting) -> None:
    async def run() -> None:
        ids = [submit(database) for _ in range(5)]
        async with watched(database) as place:
            begun = time.monotonic()
            watchers = [Watcher(place, database, id) for id in ids for _ in range(100)]
            before = database.reads
            for number in range(2, 7):
                for id in ids:
                    happen(database, id)
                assert {tuple(await watcher.hear(number)) for watcher in watchers} == {tuple(range(1, number + 1))}
            looks = (time.monotonic() - begun) / LOOK
            assert database.reads - before <= looks + len(ids) * 6 + 5  # a look for all, and each event read once

    asyncio.run(run())


def test_who_watches_many_jobs_that_wait_looks_once_for_all(database: Counting) -> None:
    async def run() -> None:
        ids = [submit(database) for _ in range(30)]
        async with watched(database) as place:
            for id in ids:
                await Watcher(place, database, id).hear(1)
            before, begun = database.reads, time.monotonic()
            while database.reads < before + 4:
                await asyncio.sleep(0.01)
            assert time.monotonic() - begun > 2 * LOOK

    asyncio.run(run())


@pytest.mark.parametrize("after", [0, 7, KEPT, 3 * KEPT])
def test_who_comes_late_is_told_everything(database: Counting, after: int) -> None:
    async def run() -> None:
        id = submit(database)
        happen(database, id, 3 * KEPT)
        async with watched(database) as place:
            watcher = Watcher(place, database, id, after)
            await watcher.hear(3 * KEPT + 1)
            happen(database, id, KEPT)
            jobs.cancel(database.database, ME, id)
            assert await watcher.hear_all() == list(range(after + 1, 4 * KEPT + 3))

    asyncio.run(run())


def test_who_falls_behind_is_told_everything(database: Counting) -> None:
    async def run() -> None:
        id = submit(database)
        async with watched(database) as place:
            slow, quick = (Watcher(place, database, id) for _ in range(2))
            await slow.hear(1)
            for number in range(KEPT + 1, 4 * KEPT, KEPT):
                happen(database, id, KEPT)
                await quick.hear(number)
            jobs.cancel(database.database, ME, id)
            assert await slow.hear_all() == await quick.hear_all() == list(range(1, 3 * KEPT + 3))

    asyncio.run(run())


def test_a_stream_ends_where_its_job_is_deleted(database: Counting) -> None:
    async def run() -> None:
        id = submit(database)
        jobs.cancel(database.database, ME, id)
        async with watched(database) as place:
            watcher = Watcher(place, database, id, 2)
            while database.database.write(lambda db: stored.drop_past(db, timedelta(0), 100)):
                pass
            assert await watcher.hear_all() == []

    asyncio.run(run())


def test_streams_outlast_a_database_that_goes_away(database: Counting) -> None:
    async def run() -> None:
        id = submit(database)
        async with watched(database) as place:
            watcher = Watcher(place, database, id)
            await watcher.hear(1)
            database.away, before = True, database.reads
            happen(database, id)
            while database.reads < before + 2:
                await asyncio.sleep(0.01)
            database.away = False
            assert await watcher.hear(2) == [1, 2]

    asyncio.run(run())


def test_streams_end_with_the_server(database: Counting) -> None:
    async def run() -> None:
        id, stops = submit(database), asyncio.Event()
        async with watched(database, stopping=stops.is_set) as place:
            watcher = Watcher(place, database, id)
            await watcher.hear(1)
            asyncio.get_running_loop().call_later(0.1, stops.set)
            assert await watcher.hear_all() == [1]

    asyncio.run(run())


def test_a_quiet_stream_says_that_it_is_there(database: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "COMMENT", 0.05)

    async def run() -> None:
        async with watched(database) as place:
            watcher = Watcher(place, database, submit(database))
            await watcher.hear(1)
            assert [await anext(watcher.stream) for _ in range(2)] == [b": still here\n\n"] * 2

    asyncio.run(run())


def test_a_job_is_looked_at_until_the_last_has_left(database: Counting) -> None:
    async def run() -> None:
        id = submit(database)
        async with watched(database) as place:
            watchers = [Watcher(place, database, id) for _ in range(3)]
            place.leave(id)
            place.leave(id)
            happen(database, id)
            assert await watchers[2].hear(2) == [1, 2]
            place.leave(id)
            await asyncio.sleep(2 * LOOK)  # for a look that was under way
            before = database.reads
            await asyncio.sleep(4 * LOOK)
            assert (database.reads, place.watchers) == (before, 0)

    asyncio.run(run())


def test_no_more_watch_than_may(database: Counting) -> None:
    async def run() -> None:
        first, second = submit(database), submit(database)
        async with watched(database, most=2) as place:
            place.join(first, 1)
            place.join(second, 1)
            with pytest.raises(TooManyWatchers):
                place.join(first, 1)
            place.leave(second)
            place.join(first, 1)
            assert place.watchers == 2

    asyncio.run(run())


# Over HTTP


def test_past_the_limit_it_is_503_until_somebody_leaves(database_url: str) -> None:
    with serving(Settings(database=database_url, max_watchers=2)) as client, ExitStack() as streams:
        client.post("/v1/admin/datasets", params={"name": "small"}, content=TABLE).raise_for_status()
        job = {"dataset": "small", "label": "sick", "learner": "budget-forest", "params": {"max_trees": 1000, "alpha": list(range(50))}}
        id = client.post("/v1/admin/training-jobs", json=job).json()["id"]
        events = f"/v1/admin/training-jobs/{id}/events"
        held = [streams.enter_context(ExitStack()) for _ in range(2)]
        lines = [place.enter_context(client.stream("GET", events)).iter_lines() for place in held]
        assert [next(line) for line in lines] == ["id: 1"] * 2
        refused = client.get(events)
        problem(refused, 503, "too-many-watchers")
        assert int(refused.headers["retry-after"]) > 0
        assert client.get(f"/v1/admin/training-jobs/{id}").status_code == 200
        held[0].close()
        end = time.monotonic() + PATIENCE
        while (status := first_status(client, events)) == 503:
            assert time.monotonic() < end
        assert status == 200
        client.post(f"/v1/admin/training-jobs/{id}/cancel").raise_for_status()


def first_status(client: httpx.Client, events: str) -> int:
    with client.stream("GET", events) as stream:
        return stream.status_code
