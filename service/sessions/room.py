"""How many sessions an owner has open: counted in the database every few seconds, and by hand in between."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from frugal.service.errors import TooManySessions
from frugal.service.store.db import Database
from frugal.service.store.session_rows import count_running
from frugal.service.store.threads import in_thread

COUNTED_EVERY = 5.0  # seconds
OWNERS = 10_000  # remembered


class Room:
    """At most so many open sessions per owner, give or take what other processes open in five seconds.

    Between two counts every opening adds one and nothing takes any away, so there are never more than that. Nobody is refused for it,
    though: whoever finds no room waits for a count that began after it came.
    """

    def __init__(self, database: Database, most: int) -> None:
        self.database, self.most = database, most
        self._tallies: OrderedDict[str, Tally] = OrderedDict()

    @asynccontextmanager
    async def taken(self, owner: str) -> AsyncIterator[None]:
        """Room for one more while it is opened, or TooManySessions."""
        tally = self._of(owner)
        came = time.monotonic()
        async with tally.deciding:
            if came >= tally.until or (tally.most >= self.most and tally.counted < came):
                await self._count(owner, tally)
            if tally.most >= self.most:
                raise TooManySessions(
                    f"You have {self.most:,} open sessions, the most there may be: finish or delete some.", limit=self.most
                )
            tally.take_off()
        try:
            yield
        finally:
            tally.land()

    def _of(self, owner: str) -> "Tally":
        tally = self._tallies.setdefault(owner, Tally())
        self._tallies.move_to_end(owner)
        if len(self._tallies) > OWNERS:
            self._forget_one()
        return tally

    def _forget_one(self) -> None:
        """Of those that nobody is waiting for, the one unused for longest."""
        idle = next((owner for owner, tally in self._tallies.items() if tally.idle), None)
        if idle is not None:
            del self._tallies[idle]

    async def _count(self, owner: str, tally: "Tally") -> None:
        """What is under way may be counted or not: it is added, and where that leaves no room, waited for."""
        while True:
            under_way, began = tally.under_way, time.monotonic()
            found = await in_thread(self.database.read, lambda db: count_running(db, owner, self.most))
            tally.most, tally.counted, tally.until = found + under_way, began, began + COUNTED_EVERY
            if tally.most < self.most or not under_way:
                return
            await tally.landed.wait()


class Tally:
    """What is known of one owner's open sessions."""

    def __init__(self) -> None:
        self.most = 0  # there are no more than this
        self.counted = self.until = 0.0  # when that was counted, and how long it holds
        self.under_way = 0
        self.landed = asyncio.Event()
        self.deciding = asyncio.Lock()

    @property
    def idle(self) -> bool:
        return not self.under_way and not self.deciding.locked()

    def take_off(self) -> None:
        self.most += 1
        self.under_way += 1
        self.landed.clear()

    def land(self) -> None:
        self.under_way -= 1
        if not self.under_way:
            self.landed.set()
