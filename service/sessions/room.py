"""How many sessions an owner has open: counted in the database every few seconds, and by hand in between."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from service.errors import TooManySessions
from service.store.db import Database
from service.store.sessions import count_running
from service.store.threads import in_thread

COUNTED_EVERY = 5.0  # seconds
OWNERS = 10_000  # remembered


class Room:
    """At most so many open sessions per owner, give or take what other processes open in five seconds.

    Sessions end and are deleted without a word to this count, so it is only ever too high: nobody is refused but by a new one, which waits
    for the openings under way here and so is exact.
    """

    def __init__(self, database: Database, most: int) -> None:
        self.database, self.most = database, most
        self._counts: OrderedDict[str, Count] = OrderedDict()

    @asynccontextmanager
    async def taken(self, owner: str) -> AsyncIterator[None]:
        """A place for the session that is opened inside, or TooManySessions."""
        count = self._counts.setdefault(owner, Count())
        self._counts.move_to_end(owner)
        if len(self._counts) > OWNERS:
            self._counts.popitem(last=False)
        came = time.monotonic()
        if count.open >= self.most or came >= count.began + COUNTED_EVERY:
            await self._count(owner, count, came)
        if count.open >= self.most:
            raise TooManySessions(f"You have {self.most:,} open sessions, the most there may be: finish or delete some.", limit=self.most)
        count.open += 1
        count.opening += 1
        try:
            yield
        finally:
            count.opening -= 1
            if not count.opening:
                count.quiet.set()

    async def _count(self, owner: str, count: "Count", came: float) -> None:
        """Count in the database, once for all who wait: whoever came before a count began goes by it."""
        async with count.lock:
            if count.began >= came:
                return
            while count.open >= self.most and count.opening:
                count.quiet.clear()
                await count.quiet.wait()
            began = time.monotonic()
            found = await in_thread(self.database.read, lambda db: count_running(db, owner, self.most))
            count.open, count.began = found + count.opening, began


@dataclass(slots=True)
class Count:
    """An owner's open sessions as they were counted, and opened here since."""

    open: int = 0
    began: float = -math.inf  # when the counting did
    opening: int = 0  # under way
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)  # set when no opening is under way
