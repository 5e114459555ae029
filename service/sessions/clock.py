"""The database's time for steps: asked for every few seconds, and counted on in between, so that a step need not ask."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

EVERY = 5.0  # seconds
TOLD = 0.001  # seconds; SQLite tells no less
SINCE_START = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while the machine sleeps, where there is such a clock


class Clock:
    """What time it is by the database. Nothing but the database sets it: this machine's own date may be wrong, or jump.

    Examples
    --------
    >>> clock = Clock()
    >>> at = datetime(2030, 1, 1, tzinfo=UTC)
    >>> clock.hear(at, seconds())
    >>> at < clock.now() < at.replace(minute=1)
    True
    """

    def __init__(self) -> None:
        self._epoch = 0.0  # when, by the database, this machine started

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._epoch + seconds(), UTC)

    def hear(self, told: datetime, asked: float) -> None:
        """What the database said when it was asked at that second. It said so between then and now: a clock that may be right stays."""
        earliest, latest = told.timestamp() - seconds(), told.timestamp() - asked + TOLD
        if not earliest <= self._epoch <= latest:
            self._epoch = (earliest + latest) / 2


def seconds() -> float:
    """Seconds since this machine started."""
    return time.clock_gettime(SINCE_START)


async def keep_right(ask: Callable[[], Awaitable[None]]) -> None:
    """Ask the database for its time until cancelled; whatever goes wrong, it is asked again."""
    while True:
        await asyncio.sleep(EVERY)
        with suppress(Exception):
            await ask()
