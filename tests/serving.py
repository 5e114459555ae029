"""The app on a real socket, in a thread of the test process."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from frugal.models.warm import warm_up
from frugal.service.app import create
from frugal.service.config import Settings
from frugal.service.connections import Guarded


@contextmanager
def serving(settings: Settings) -> Iterator[httpx.Client]:
    """A running server for these settings; the client's `app` is the app itself."""
    with running(create(settings)) as client:
        yield client


@cache
def ready() -> None:
    """Kernels first: on a cold and busy machine a request would wait longer for them than any client does."""
    warm_up("deciding", "predicting")


class PromptServer(uvicorn.Server):
    """Looks every 10 ms, not every 100, whether it is to stop: there are hundreds of these in a test run."""

    async def main_loop(self) -> None:
        ticks = 0
        while not self.should_exit:
            ticks += 1
            await asyncio.sleep(0.01)
            if ticks % 10 == 0 and await self.on_tick(ticks // 10):
                return


@contextmanager
def running(app: FastAPI) -> Iterator[httpx.Client]:
    ready()
    options = {"http": Guarded, "ws": "none", "proxy_headers": False, "access_log": False}  # as service/serve.py runs it
    server = PromptServer(uvicorn.Config(app, port=0, log_level="error", lifespan="on", **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, limits=limits) as client:
            client.app = app  # type: ignore[attr-defined]
            yield client
    finally:
        server.should_exit = True
        thread.join(30)


def problem(reply: httpx.Response, status: int, slug: str) -> Any:
    """A reply that must be this problem; gives its body."""
    body = reply.json()
    assert (reply.status_code, body["type"]) == (status, f"urn:frugal:problem:{slug}"), body
    assert reply.headers["content-type"] == "application/problem+json"
    assert body["status"] == status
    assert body["request_id"] == reply.headers["x-request-id"]
    return body
