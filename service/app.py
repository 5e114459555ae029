"""The app: routes, errors, and what lives as long as the process does."""

import asyncio
import gc
import logging
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import FrameType

from fastapi import FastAPI

from frugal.service import metrics
from frugal.service.api import datasets, deciding, health, jobs, keys, problems, sessions, versions
from frugal.service.api.edge import Edge
from frugal.service.api.page import describe_itself
from frugal.service.api.sharing import Shared
from frugal.service.config import Settings, from_environment
from frugal.service.logs import RequestLines
from frugal.service.owners.lookup import Keys
from frugal.service.owners.rates import Rates
from frugal.service.registry.cache import Versions
from frugal.service.sessions.clock import keep_right
from frugal.service.sessions.opening import open_ledger
from frugal.service.sessions.steps import Steps, sweep_forever
from frugal.service.store.db import Database, open_database
from frugal.service.store.lock import FileLock
from frugal.service.store.threads import limit_queues
from frugal.service.store.trying import Trial
from frugal.service.training import sweeping
from frugal.service.training.jobs import release_all
from frugal.service.training.supervising import Supervisor
from frugal.service.training.watching import Watching
from frugal.service.warming import Warming

log = logging.getLogger("frugal")


def create(settings: Settings | None = None, lock: FileLock | None = None) -> FastAPI:
    """The app for these settings; by default those of the environment, as worker processes need it. `lock` is an SQLite file's, if held."""
    app = FastAPI(
        title="Frugal",
        version=version("frugal"),
        summary="Prediction where every fact about a case costs money, time or pain.",
        lifespan=_lifespan,
        separate_input_output_schemas=False,
        redirect_slashes=False,  # a redirect would lead wherever the Host header says
    )
    app.state.settings, app.state.lock = settings or from_environment(), lock
    app.state.lines = RequestLines()
    app.state.exposition = Shared(metrics.exposition)
    app.state.warm = app.state.stopping = False
    app.state.kernels = Warming()
    app.state.uploads = datasets.Turns(datasets.AT_ONCE, app.state.settings.max_queue)
    deciders = (sessions.step, sessions.router, deciding.router, deciding.large)
    for part in (*deciders, versions.router, versions.admin, datasets.router, jobs.router, keys.router, health.router):
        app.router.routes.extend(part.routes)  # include_router would wrap each in one more layer of matching
    describe_itself(app)
    problems.install(app)
    app.add_middleware(Edge)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Kernels first, so that no session waits for a compiler; then the database; then the sweep beside the requests."""
    settings: Settings = app.state.settings
    limit_queues(settings.max_queue)
    log.info("%s", await asyncio.to_thread(app.state.kernels.begin))
    app.state.warm = True
    database = await asyncio.to_thread(open_database, settings, app.state.lock)
    try:
        ledger = await open_ledger(database, settings)
        app.state.database, app.state.ledger, app.state.trial = database, ledger, Trial(database)
        app.state.keys, app.state.rates = Keys(database, settings.admin_key), Rates(settings.max_rate)
        app.state.versions = Versions(database, settings.loaded_versions)
        app.state.steps = Steps(ledger, app.state.versions, database, settings.session_ttl, settings.max_open_sessions, settings.retention)
        gc.collect()
        gc.set_threshold(10_000, 20, 50)  # a step makes hundreds of objects and no cycles
        gc.freeze()  # compiled kernels and routes live for ever: a full collection over them stopped every request for 70 ms
        app.state.steps.failed = _expiring_failed
        _drain_before_stopping(app, settings.drain)
        app.state.watching = Watching(database, settings.most_watchers, lambda: app.state.stopping)
        beside = (
            sweep_forever(app.state.steps, settings.sweep_every, _sweep_failed),
            sweeping.sweep_forever(database, settings, _sweep_failed),
            keep_right(ledger.ping),
        )
        tasks = [asyncio.create_task(work) for work in beside]
        training = Training(database, settings) if settings.sqlite_file else None
        try:
            yield
        finally:
            if training is not None:
                await asyncio.to_thread(training.end)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await app.state.watching.close()
            await ledger.close()
            app.state.lines.flush()
    finally:
        await asyncio.to_thread(database.close)


class Training:
    """The supervising loop in a thread: an SQLite file has one process, so it trains here. With PostgreSQL `frugal worker` does."""

    def __init__(self, database: Database, settings: Settings) -> None:
        release_all(database)
        self.supervisor = Supervisor(database, settings)
        self.thread = threading.Thread(target=self.supervisor.run, name="frugal-training", daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.supervisor.stop.set()
        self.thread.join()


def _expiring_failed(error: Exception, version: str) -> None:
    kind = type(error).__qualname__
    log.warning("a session on %s whose time is up could not be ended and will be tried again: %s", version, kind)


def _sweep_failed(error: Exception) -> None:
    log.warning("a sweep failed and will be tried again: %s", type(error).__qualname__)


def _drain_before_stopping(app: FastAPI, seconds: float) -> None:
    """On SIGTERM say for a while that this process is not ready, so that whoever balances the load sends it nothing more; then stop.

    Ctrl-C stops at once; streams of events, which would hold the server for as long as somebody watches, end with either.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # a test's server
    stop, loop = signal.getsignal(signal.SIGTERM), asyncio.get_running_loop()

    def drain(number: int, frame: FrameType | None) -> None:
        app.state.stopping = True
        if callable(stop):
            loop.call_soon_threadsafe(loop.call_later, seconds, stop, number, frame)

    interrupted = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        app.state.stopping = True
        if callable(interrupted):
            interrupted(number, frame)

    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGINT, interrupt)
