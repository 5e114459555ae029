"""The watch over a server's connections: looks at each once a second, and makes room when there are too many.

One timer for all of them: a timer for every request would cost a step more than the rest of the guard does.
"""

import asyncio
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

from service.errors import Busy, Problem

TICK = 1.0  # seconds
SPARE = 100  # connections beyond the limit that are open for as long as it takes to say so


class Watched(Protocol):
    """What the watch needs of a connection."""

    transport: asyncio.Transport
    since: float
    turned_away: bool

    @property
    def busy(self) -> bool: ...

    def look(self, now: float) -> None: ...
    def refuse(self, problem: Problem) -> None: ...


class Watch:
    """Over all connections of one server."""

    def __init__(self, connections: set[Any], loop: asyncio.AbstractEventLoop, most: int) -> None:
        self.connections: set[Watched] = connections
        self.loop, self.most = loop, most
        self.looking: asyncio.TimerHandle | None = None

    def admit(self, newcomer: Watched) -> None:
        """Take a new connection in. Past the limit it gets the place of the one that has been of no use for longest, or is told to wait."""
        if self.looking is None:
            self.looking = self.loop.call_later(TICK, self._look)
        if len(self.connections) <= self.most:
            return
        seated = [one for one in self.connections if not (one.turned_away or one.transport.is_closing())]
        if len(seated) <= self.most:
            return
        useless = min((one for one in seated if not one.busy and one is not newcomer), key=lambda one: one.since, default=None)
        if useless is not None:
            useless.transport.abort()
        elif len(self.connections) > self.most + SPARE:
            newcomer.transport.abort()
        else:
            newcomer.turned_away = True
            newcomer.refuse(Busy("There are more connections than this server takes: wait, and send the same again."))

    def _look(self) -> None:
        now = self.loop.time()
        for one in list(self.connections):
            one.look(now)
        self.looking = self.loop.call_later(TICK, self._look) if self.connections else None


WATCHES: WeakKeyDictionary[ServerState, Watch] = WeakKeyDictionary()


def watch_of(server: ServerState, loop: asyncio.AbstractEventLoop, most: int) -> Watch:
    """The watch of a server, one for all its connections."""
    if server not in WATCHES:
        WATCHES[server] = Watch(server.connections, loop, most)
    return WATCHES[server]
