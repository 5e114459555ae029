"""`frugal serve`: check, migrate, then run the server, in one process or several."""

import argparse
import os
import signal
import sys

import uvicorn
from fastapi import FastAPI

from models.warm import warm_up
from service.app import create
from service.config import Settings, from_environment, is_loopback, to_environment
from service.connections import Guarded, open_files
from service.example import curl_lines
from service.logs import configuration
from service.metrics import share_between_processes, stop_sharing
from service.store.db import lock_of
from service.store.keys import any_admin
from service.store.lock import FileLock
from service.store.migrating import prepared

GRACE = 30  # seconds that requests in flight have to finish when the server is told to stop


def serve(options: argparse.Namespace) -> str:
    settings = from_environment(host=options.host, port=options.port, workers=options.workers, database=options.database)
    check(settings)
    lock = lock_of(settings.sqlite_file) if settings.sqlite_file else None  # held from here to the end: no other process gets between
    prepare(settings, lock)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises the signal again when it has stopped: that is no failure
    if settings.workers == 1:
        run(settings, create(settings, lock))
    else:
        run_workers(settings)
    return ""


def run(settings: Settings, app: FastAPI | str) -> None:
    open_files(settings.max_connections)
    uvicorn.run(
        app,
        factory=isinstance(app, str),
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        http=Guarded,
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        log_config=configuration(settings.log_level),
    )


def run_workers(settings: Settings) -> None:
    """Several processes, each with an app of its own from the environment; their metrics are in a folder that they share."""
    os.environ.update(to_environment(settings))
    shared = share_between_processes()
    print(f"frugal: {warm_up()}", file=sys.stderr)  # once here, or every worker would compile, and be taken for dead meanwhile
    try:
        run(settings, "service.app:create")
    finally:
        stop_sharing(shared)


def check(settings: Settings) -> None:
    """Refuse what cannot work, with a sentence."""
    if settings.workers > 1 and settings.sqlite_file:
        raise ValueError(
            f"{settings.workers} workers need PostgreSQL, because an SQLite file has one process: "
            "leave --workers out, or set --database postgresql://..."
        )


def prepare(settings: Settings, lock: FileLock | None) -> None:
    """Tables as this release wants them, before any worker starts."""
    print(f"frugal: database {settings.shown_database}", file=sys.stderr)
    with prepared(settings, lock) as database:
        if not is_loopback(settings.host) and not settings.admin_key and not database.read(any_admin):
            raise ValueError(
                f"--host {settings.host} lets others in, and there is no admin key: make one first with "
                "`frugal keys create --owner NAME --role admin`, or set FRUGAL_ADMIN_KEY"
            )
        as_they_are = settings.port and is_loopback(settings.host) and not settings.admin_key  # else they want another name, and a key
        lines = curl_lines(database, f"http://{settings.host}:{settings.port}") if as_they_are else []
    if lines:
        print("frugal: a whole session, line by line:\n\n" + "\n".join(lines) + "\n", file=sys.stderr)
