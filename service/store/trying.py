"""Whether the database can be written, for /readyz: tried at most every few seconds, however often it is asked and by how many."""

import asyncio
import time

from frugal.service.errors import Problem
from frugal.service.store.db import Database
from frugal.service.store.threads import in_thread

EVERY = 3.0  # seconds


class Trial:
    """Remembers how the last try went."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._until = 0.0
        self._problem: Problem | None = None
        self._trying = asyncio.Lock()

    async def problem(self) -> Problem | None:
        """What keeps the database from being written; None where nothing does."""
        async with self._trying:  # those who come meanwhile wait for the same
            if time.monotonic() >= self._until:
                self._problem = await self._try()
                self._until = time.monotonic() + EVERY
            return self._problem

    async def _try(self) -> Problem | None:
        try:
            await in_thread(self.database.try_write)
            return None
        except Problem as problem:
            return problem
