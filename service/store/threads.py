"""Database work for coroutines: in threads, and not for ever. A database that is frozen holds a thread; whoever waits is told."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from service.errors import DatabaseAway

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 10.0  # seconds
WORK = ThreadPoolExecutor(16, "frugal-database")
KEYS = ThreadPoolExecutor(4, "frugal-keys")  # of their own: nobody gets in without them


async def in_thread(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """The work's result, or DatabaseAway if it takes too long."""
    return await within(PATIENCE, WORK, partial(work, *given, **named))


async def within(patience: float, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    try:
        async with asyncio.timeout(patience):
            return await asyncio.get_running_loop().run_in_executor(pool, work)
    except TimeoutError as error:
        raise DatabaseAway() from error
