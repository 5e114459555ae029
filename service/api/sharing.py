"""Answers that everybody may ask for and that take a while to write: written once for all who wait."""

import asyncio
import math
import time
from collections.abc import Callable

from frugal.service.store.threads import compute


class Shared:
    """What `write` gives in a thread, one at a time: whoever came before it began gets the same bytes as the others."""

    def __init__(self, write: Callable[[], bytes], for_ever: bool = False) -> None:
        self._write, self._for_ever = write, for_ever
        self._lock, self._began, self._written = asyncio.Lock(), -math.inf, b""

    async def read(self) -> bytes:
        came = time.monotonic()
        async with self._lock:
            if self._began < came and not (self._for_ever and self._written):
                began = time.monotonic()
                self._written = await compute(self._write)
                self._began = began
            return self._written
