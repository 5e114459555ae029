"""Who is calling: keys looked up in the database and remembered for five seconds, so revoking one takes that long."""

import time
from collections import OrderedDict
from functools import partial

from frugal.service.keyform import digest, well_formed
from frugal.service.owners.issuing import SETTINGS, Key
from frugal.service.store import key_rows
from frugal.service.store.clock import clock
from frugal.service.store.db import Database
from frugal.service.store.threads import KEYS, PATIENCE, within

REMEMBERED = 5.0  # seconds
MOST = 10_000  # keys remembered, unknown ones too


class Keys:
    """Keys by what a client sends. `given` is the admin key of the settings, which no database knows."""

    def __init__(self, database: Database, given: str | None) -> None:
        self.database = database
        self._given = digest(given) if given else None
        self._known: OrderedDict[str, tuple[float, Key | None]] = OrderedDict()
        self._any: tuple[float, bool] = (0.0, False)

    async def find(self, key: str) -> Key | None:
        """The key that this is; None where it is unknown, revoked or expired."""
        if not well_formed(key):
            return None
        hashed = digest(key)
        if hashed == self._given:
            return Key(SETTINGS, "admin", "admin")
        until, found = self._known.get(hashed, (0.0, None))
        if time.monotonic() >= until:
            found, left = await within(PATIENCE, KEYS, partial(self._read, hashed))
            self._known[hashed] = (time.monotonic() + left, found)
            self._known.move_to_end(hashed)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return found

    async def any(self) -> bool:
        """Whether there is any key: without one, loopback is open."""
        if self._given is not None:
            return True
        until, found = self._any
        if not found and time.monotonic() >= until:
            found = await within(PATIENCE, KEYS, partial(self.database.read, key_rows.any_key))
            self._any = (time.monotonic() + REMEMBERED, found)
        return found

    def forget(self) -> None:
        """After a change in this process: look again at once."""
        self._known.clear()
        self._any = (0.0, False)

    def _read(self, hashed: str) -> tuple[Key | None, float]:
        """The key, and how many seconds that can be remembered: no longer than it lasts, by the database's clock."""
        row, at = self.database.read(lambda db: (key_rows.by_hash(db, hashed), clock(db)))
        left = REMEMBERED if row is None or row.expires_at is None else (row.expires_at - at).total_seconds()
        return (None, REMEMBERED) if row is None or left <= 0 else (Key(row.id, row.owner, row.role), min(left, REMEMBERED))
