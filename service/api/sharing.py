"""Answers that everybody may ask for and that take a while to write: written once for all who wait."""

import asyncio
import math
import time
from collections.abc import Callable

from fastapi import FastAPI, Request, Response
from pydantic_core import to_json

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


def describe_itself(app: FastAPI) -> None:
    """/openapi.json from bytes that are kept: FastAPI writes it anew for every request, 7 ms that anybody could ask for at will."""
    written = Shared(lambda: to_json(app.openapi()), for_ever=True)

    async def openapi(request: Request) -> Response:
        return Response(await written.read(), media_type="application/json")

    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != app.openapi_url]
    app.add_route(str(app.openapi_url), openapi, include_in_schema=False)
