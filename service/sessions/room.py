"""How many sessions an owner has open: counted in the database every few seconds, and by hand in between."""

import time
from collections import OrderedDict

from service.errors import TooManySessions
from service.store.db import Database
from service.store.sessions import count_running
from service.store.threads import in_thread

COUNTED_EVERY = 5.0  # seconds
OWNERS = 10_000  # remembered


class Room:
    """At most so many open sessions per owner, give or take what other processes open in five seconds."""

    def __init__(self, database: Database, most: int) -> None:
        self.database, self.most = database, most
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    async def take(self, owner: str) -> None:
        """Room for one more, or TooManySessions."""
        until, count = self._counts.get(owner, (0.0, 0))
        if time.monotonic() >= until:
            count = await in_thread(self.database.read, lambda db: count_running(db, owner, self.most))
            until = time.monotonic() + COUNTED_EVERY
        self._counts[owner] = (until, min(count + 1, self.most))
        if count >= self.most:
            raise TooManySessions(f"You have {self.most:,} open sessions, the most there may be: finish or delete some.", limit=self.most)
        self._counts.move_to_end(owner)
        if len(self._counts) > OWNERS:
            self._counts.popitem(last=False)
