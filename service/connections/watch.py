"""The watch over a server's connections: looks at each once a second, and makes room when there are too many.

One timer for all of them, and the idle ones in the order in which they became so: a timer for every request would cost a step more than the
rest of the guard does, and looking for the longest idle among a thousand took longer than accepting a connection.
"""

import asyncio
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

from frugal.service.errors import Busy, Problem

TICK = 1.0  # seconds
SPARE = 100  # connections beyond the limit that are open for as long as it takes to say so


class Watched(Protocol):
    """What the watch needs of a connection."""

    transport: asyncio.Transport

    def look(self, now: float) -> None: ...
    def refuse(self, problem: Problem) -> None: ...


class Watch:
    """Over all connections of one server."""

    def __init__(self, connections: set[Any], loop: asyncio.AbstractEventLoop, most: int) -> None:
        self.connections: set[Watched] = connections  # the server's own: those that have a place
        self.idle: dict[Watched, None] = {}  # those of them that work on nothing, the longest idle first
        self.leaving: set[Watched] = set()  # those that are told to come again
        self.loop, self.most = loop, most
        self.looking: asyncio.TimerHandle | None = None

    def admit(self, newcomer: Watched) -> None:
        """Take a new connection in. Past the limit it gets the place of the one that has been idle longest, or is told to wait."""
        if self.looking is None:
            self.looking = self.loop.call_later(TICK, self._look)
        self.idle[newcomer] = None
        if len(self.connections) <= self.most:
            return
        longest = next(iter(self.idle))
        if longest is not newcomer:
            self.forget(longest)
            longest.transport.abort()
            return
        self.forget(newcomer)
        if len(self.leaving) >= SPARE:
            newcomer.transport.abort()
        else:
            self.leaving.add(newcomer)
            newcomer.refuse(Busy("There are more connections than this server takes: wait, and send the same again."))

    def works(self, one: Watched) -> None:
        self.idle.pop(one, None)

    def rests(self, one: Watched) -> None:
        if one in self.connections:
            self.idle[one] = None

    def forget(self, one: Watched) -> None:
        """It is gone, or has no place."""
        self.connections.discard(one)
        self.leaving.discard(one)
        self.idle.pop(one, None)

    def _look(self) -> None:
        now = self.loop.time()
        for one in [*self.connections, *self.leaving]:
            one.look(now)
        self.looking = self.loop.call_later(TICK, self._look) if self.connections or self.leaving else None


WATCHES: WeakKeyDictionary[ServerState, Watch] = WeakKeyDictionary()


def watch_of(server: ServerState, loop: asyncio.AbstractEventLoop, most: int) -> Watch:
    """The watch of a server, one for all its connections."""
    if server not in WATCHES:
        WATCHES[server] = Watch(server.connections, loop, most)
    return WATCHES[server]
