"""The app: routes, errors, and what lives as long as the process does."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from models.warm import warm_up
from service.api import deciding, health, models, problems, sessions
from service.config import Settings, from_environment
from service.registry.cache import Versions
from service.sessions.opening import open_ledger
from service.sessions.steps import Steps, sweep_forever
from service.store.db import open_database
from service.store.ids import new_id

log = logging.getLogger("frugal")


def create(settings: Settings | None = None) -> FastAPI:
    """The app for these settings; by default those of the environment, as worker processes need it."""
    app = FastAPI(
        title="Frugal",
        version=version("frugal"),
        summary="Prediction where every fact about a case costs money, time or pain.",
        lifespan=_lifespan,
        separate_input_output_schemas=False,
    )
    app.state.settings = settings or from_environment()
    app.state.warm = False
    for part in (sessions.router, deciding.router, deciding.large, models.router, models.admin, health.router):
        app.include_router(part)
    problems.install(app)
    app.add_middleware(RequestIds)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Kernels first, so that no request waits for a compiler; then the database; then the sweep beside the requests."""
    settings: Settings = app.state.settings
    await asyncio.to_thread(warm_up)
    app.state.warm = True
    database = await asyncio.to_thread(open_database, settings)
    try:
        ledger = await open_ledger(database, settings)
        app.state.database, app.state.ledger = database, ledger
        app.state.versions = Versions(database, settings.loaded_versions)
        app.state.steps = Steps(ledger, app.state.versions, database, settings.session_ttl)
        sweep = asyncio.create_task(sweep_forever(app.state.steps, settings.sweep_every, _sweep_failed))
        try:
            yield
        finally:
            sweep.cancel()
            with suppress(asyncio.CancelledError):
                await sweep
            await ledger.close()
    finally:
        await asyncio.to_thread(database.close)


def _sweep_failed(error: Exception) -> None:
    log.warning("the sweep of expired sessions failed and will be tried again: %s", error)


class RequestIds:
    """Every request has an id: the client's own where it is well-formed, else a new one. It goes back in X-Request-ID and in problems."""

    WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,64}")

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        id = given if self.WELL_FORMED.fullmatch(given) else str(new_id()).encode()
        scope["request_id"] = id.decode()

        async def send_with_id(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", id)]
            await send(message)

        await self.app(scope, receive, send_with_id)
