"""Work in threads for coroutines: not for ever, and not behind a queue without an end.

A database that is frozen holds a thread; whoever waits is told. Past `most` that wait, one more is told at once instead of later.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from frugal.service.errors import Busy, DatabaseAway

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 10.0  # seconds


class Threads:
    """Threads for one kind of work, and the queue before them."""

    def __init__(self, size: int, name: str, most: int = 512) -> None:
        self.most = most  # pieces of work that may wait for a thread
        self.waiting = 0
        self._pool = ThreadPoolExecutor(size, name)
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Queue work; Busy where the queue is full."""
        with self._lock:
            if self.waiting >= self.most:
                raise _too_busy()
            self.waiting += 1
        return self._pool.submit(self._begun, work)

    def withdraw(self, done: "Future[T]") -> bool:
        """Take work out of the queue; False where it has begun."""
        if not done.cancel():
            return False
        with self._lock:
            self.waiting -= 1
        return True

    def _begun(self, work: Callable[[], T]) -> T:
        with self._lock:
            self.waiting -= 1
        return work()


WORK = Threads(16, "frugal-database")
KEYS = Threads(4, "frugal-keys")  # of their own: nobody gets in without them
HEALTH = Threads(2, "frugal-health")  # of their own: a server under load is not a sick one
COMPUTE = Threads(min(32, (os.cpu_count() or 1) + 4), "frugal-compute")


def limit_queues(most: int) -> None:
    """How much may wait before each kind of threads."""
    for threads in (WORK, KEYS, HEALTH, COMPUTE):
        threads.most = most


async def in_thread(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """The result of work with the database: Busy if its turn does not come, DatabaseAway if it takes too long."""
    return await within(PATIENCE, WORK, partial(work, *given, **named))


async def within(patience: float, threads: Threads, work: Callable[[], T]) -> T:
    """The same with other threads or another patience."""
    done = threads.submit(work)
    try:
        async with asyncio.timeout(patience):
            return await asyncio.wrap_future(done)
    except TimeoutError as error:
        if threads.withdraw(done):
            raise _too_busy() from error
        raise DatabaseAway() from error
    except asyncio.CancelledError:
        threads.withdraw(done)
        raise


async def compute(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """The result of work that needs nothing but a processor, however long it takes; Busy if its turn does not come."""
    done = COMPUTE.submit(partial(work, *given, **named))
    heard = asyncio.wrap_future(done)
    try:
        await asyncio.wait([heard], timeout=PATIENCE)
    except asyncio.CancelledError:
        COMPUTE.withdraw(done)
        raise
    if not heard.done() and COMPUTE.withdraw(done):
        raise _too_busy()
    return await heard


def _too_busy() -> Busy:
    return Busy("Too much is asked of this server at once. Nothing was done: wait, and send the same request again.")
