"""Those who watch jobs: a process looks into the database once for all of them, however many they are.

One task looks, four times a second, which of the watched jobs have new events, and reads those. Each job's last events stand in memory
for its watchers; one that comes late, or falls behind, reads what it has missed for itself, and only a few do that at a time.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

from pydantic_core import to_json

from frugal.service.errors import Problem, TooManyWatchers
from frugal.service.store import job_rows
from frugal.service.store.db import Database
from frugal.service.store.tables import iso
from frugal.service.store.threads import in_thread

LOOK = 0.25  # seconds between two looks for events
COMMENT = 15.0  # seconds after which a quiet stream sends a comment, so that nothing between takes it for dead
PAGE = 200  # events read at once
KEPT = 200  # events of a job that stand in memory
CATCHING_UP = 4  # watchers who read for themselves at a time: the rest of the service needs the database too
log = logging.getLogger("frugal")


class Watched:
    """A job that is watched: its last events, as they are sent, and who waits for the next."""

    def __init__(self, events: int) -> None:
        self.watchers = 0
        self.over = False
        self.before = max(0, events - KEPT)  # the number of the last event that is not here
        self.events: deque[bytes] = deque()
        self._changed = asyncio.Event()

    @property
    def last(self) -> int:
        return self.before + len(self.events)

    def since(self, number: int) -> list[bytes] | None:
        """The events after this one; None where some of them are not here."""
        return list(self.events)[number - self.before :] if number >= self.before else None

    def add(self, events: Iterable[bytes]) -> None:
        self.events.extend(events)
        while len(self.events) > KEPT:
            self.events.popleft()
            self.before += 1
        self.wake()

    def end(self) -> None:
        """No more events will come."""
        self.over = True
        self.wake()

    def wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, seconds: float) -> bool:
        """Whether there was news within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._changed.wait()
        return False


class Watching:
    """All who watch in this process."""

    def __init__(self, database: Database, most: int, stopping: Callable[[], bool]) -> None:
        self.database, self.most, self.stopping = database, most, stopping
        self.watchers = 0
        self._jobs: dict[UUID, Watched] = {}
        self._joined = asyncio.Event()
        self._catching_up = asyncio.Semaphore(CATCHING_UP)
        self._tasks = [asyncio.create_task(self._look_on()), asyncio.create_task(self._wake_at_the_end())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def join(self, id: UUID, events: int) -> None:
        """One more watcher of a job that has so many events, to be taken out with `leave`; TooManyWatchers where there is no room."""
        if self.watchers >= self.most:
            raise TooManyWatchers(f"{self.most:,} are watching jobs already: read the job with GET now and then, or watch it later.")
        self.watchers += 1
        if id not in self._jobs:
            self._jobs[id] = Watched(events)
            self._joined.set()
        self._jobs[id].watchers += 1

    def leave(self, id: UUID) -> None:
        self.watchers -= 1
        self._jobs[id].watchers -= 1
        if not self._jobs[id].watchers:
            del self._jobs[id]

    async def told(self, id: UUID, after: int) -> AsyncIterator[bytes]:
        """What one who has joined is told: the job's events after that number as they come, until the last or until the server stops."""
        job = self._jobs[id]
        while not self.stopping():
            events = job.since(after)
            if events is None and not (events := await self._missed(id, after)):
                return  # the database is away, or the job deleted: the client comes back with Last-Event-ID
            if events:
                after += len(events)
                yield b"".join(events)
            elif job.over:
                return
            elif not await job.changed(COMMENT):
                yield b": still here\n\n"

    async def _missed(self, id: UUID, after: int) -> list[bytes]:
        async with self._catching_up:
            with suppress(Problem):
                return await self._read(id, after)
        return []

    async def _read(self, id: UUID, after: int) -> list[bytes]:
        rows = await in_thread(self.database.read, lambda db: job_rows.events_after(db, id, after, PAGE))
        return [shown(row) for row in rows]

    async def _look_on(self) -> None:
        """Look at once for a job that is new, and again and again for all."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._joined.wait()
            self._joined.clear()
            try:
                await self._look()
            except Problem:
                await asyncio.sleep(LOOK)  # the database is away: watchers stay, and are told when it is back
            except Exception:
                log.exception("a look for events failed")
                await asyncio.sleep(LOOK)

    async def _look(self) -> None:
        """One look at all jobs that may have news; then at each that has."""
        ids = [id for id, job in self._jobs.items() if not job.over]
        if not ids:
            return
        found = await in_thread(self.database.read, lambda db: job_rows.standings(db, ids))
        for id in ids:
            over, events = found.get(id, (True, 0))  # one that is gone was over long ago
            await self._update(id, over, events)

    async def _update(self, id: UUID, over: bool, events: int) -> None:
        job = self._jobs.get(id)
        while job is not None and job.last < events:
            if not (page := await self._read(id, job.last)):
                break
            job.add(page)
        if job is not None and over:
            job.end()

    async def _wake_at_the_end(self) -> None:
        """Nobody waits for news of a server that stops."""
        while not self.stopping():
            await asyncio.sleep(LOOK)
        for job in self._jobs.values():
            job.wake()


def shown(row: Any) -> bytes:
    """An event as it is sent."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (row.number, row.kind.encode(), to_json({"at": iso(row.at), **row.data}))
