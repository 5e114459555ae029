"""Connections to PostgreSQL for the ledger: lent one at a time, first come, first served.

asyncpg's own pool takes 30 us of processor time more for each statement, 7 % of a step (docs/decisions/0012). Every statement of
the ledger commits by itself, so there is nothing to reset between two users, and a pool can be this small.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import asyncpg

from frugal.service.address import Address
from frugal.service.errors import Busy, DatabaseAway
from frugal.service.store.db import PATIENCE

# what asyncpg raises when its server, or the way to it, is gone; the last of them for a statement on a connection that died under it
AWAY = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
SLOWEST = 10  # seconds that a statement may take


class Pool:
    """At most `size` connections. Those that break are replaced when they are next wanted."""

    def __init__(self, address: Address, size: int, most: int = 512) -> None:
        self.address, self.size = address, size
        self.most, self.waiting = most, 0  # how many may wait for a connection, and do
        self.made = 0  # connections lent or idle
        self._idle: list[Any] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()

    @property
    def idle(self) -> int:
        return len(self._idle)

    async def fetchval(self, sql: str, *values: Any, first: bool = False) -> Any:
        """The first column of the first row, or None."""
        row = await self.fetchrow(sql, *values, first=first)
        return None if row is None else row[0]

    def fetchrow(self, sql: str, *values: Any, first: bool = False) -> Awaitable[Any]:
        """The first row, or None. A rule of the tables that was broken is the caller's, as is a wrong statement: the same would happen
        again. A database that is away or fails is DatabaseAway. `first`: before all others who wait."""
        return self._run(asyncpg.Connection.fetchrow, sql, values, first)

    def fetch(self, sql: str, *values: Any) -> Awaitable[list[Any]]:
        """All rows, likewise."""
        return self._run(asyncpg.Connection.fetch, sql, values)

    async def _run(self, how: Callable[..., Awaitable[Any]], sql: str, values: tuple[Any, ...], first: bool = False) -> Any:
        db = await self._take(first)
        try:
            return await how(db, sql, *values)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.SyntaxOrAccessError, asyncpg.DataError):
            raise
        except AWAY as error:
            raise DatabaseAway() from error
        finally:
            self._give(db)

    async def close(self) -> None:
        for db in self._idle:
            try:
                await db.close(timeout=PATIENCE)
            except AWAY:
                db.terminate()
        self._idle.clear()

    async def _take(self, first: bool = False) -> Any:
        while self._idle:
            db = self._idle.pop()
            if not db.is_closed():
                return db
            self.made -= 1
        if self.made < self.size:
            self.made += 1
            return await self._connect()
        if self.waiting >= self.most and not first:
            raise Busy("Too many wait for a connection to the database. Nothing was recorded: send the same request again.")
        return await self._wait(first) or await self._connect()

    async def _connect(self) -> Any:
        """A new connection, in a place that is counted already."""
        try:
            return await asyncpg.connect(**_parts(self.address), timeout=PATIENCE, command_timeout=SLOWEST)
        except BaseException as error:
            self._gone()
            if isinstance(error, AWAY):
                raise DatabaseAway() from error
            raise

    async def _wait(self, first: bool) -> Any:
        """A connection that somebody gives back; None where one broke: its place is then ours, for a new one."""
        turn: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        self.waiting += 1
        timer = asyncio.get_running_loop().call_later(PATIENCE, _give_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give(turn.result())  # what was handed to somebody who has left
            raise
        finally:
            self.waiting -= 1
            timer.cancel()

    def _give(self, db: Any) -> None:
        if db is None or db.is_closed():
            self._gone()
        elif not self._hand_on(db):
            self._idle.append(db)

    def _gone(self) -> None:
        """A connection is no more: its place goes to whoever waits, or is free."""
        if not self._hand_on(None):
            self.made -= 1

    def _hand_on(self, db: Any) -> bool:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(db)
                return True
        return False


def _parts(address: Address) -> dict[str, Any]:
    """An address as asyncpg takes it: in parts, but for what it knows from a URL only."""
    return {
        "dsn": "postgresql://?" + urlencode({"application_name": "frugal", **address.options}),
        "host": list(address.hosts),
        "port": address.port,
        "user": address.user,
        "password": address.secret(),
        "database": address.name,
    }


def _give_up(turn: asyncio.Future[Any]) -> None:
    if not turn.done():
        turn.set_exception(Busy("No connection to the database came free within two seconds: send the same request again."))
