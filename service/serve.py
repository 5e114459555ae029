"""`frugal serve`: check, migrate, then run the server, in one process or several."""

import argparse
import os
import signal
import sys

import uvicorn

from models.warm import warm_up
from service.api.access import is_loopback
from service.config import Settings, from_environment, to_environment
from service.example import curl_lines
from service.logs import configuration
from service.metrics import share_between_processes, stop_sharing
from service.store.keys import any_admin
from service.store.migrating import prepared

GRACE = 30  # seconds that requests in flight have to finish when the server is told to stop


def serve(options: argparse.Namespace) -> str:
    settings = from_environment(host=options.host, port=options.port, workers=options.workers, database=options.database)
    check(settings)
    prepare(settings)
    os.environ.update(to_environment(settings))
    shared = None
    if settings.workers > 1:
        shared = share_between_processes()
        warm_up()  # once here, or every worker would compile, and be taken for dead meanwhile
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises the signal again when it has stopped: that is no failure
    try:
        uvicorn.run(
            "service.app:create",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
            log_config=configuration(settings.log_level),
        )
    finally:
        if shared:
            stop_sharing(shared)
    return ""


def check(settings: Settings) -> None:
    """Refuse what cannot work, with a sentence."""
    if settings.workers > 1 and settings.sqlite_file:
        raise ValueError(
            f"{settings.workers} workers need PostgreSQL, because an SQLite file has one process: "
            "leave --workers out, or set --database postgresql://..."
        )


def prepare(settings: Settings) -> None:
    """Tables as this release wants them, before any worker starts."""
    print(f"frugal: database {settings.shown_database}", file=sys.stderr)
    with prepared(settings) as database:
        if not is_loopback(settings.host) and not settings.admin_key and not database.read(any_admin):
            raise ValueError(
                f"--host {settings.host} lets others in, and there is no admin key: make one first with "
                "`frugal keys create --owner NAME --role admin`, or set FRUGAL_ADMIN_KEY"
            )
        lines = curl_lines(database, f"http://{settings.host}:{settings.port}") if settings.port else []
    if lines:
        print("frugal: a whole session, line by line:\n\n" + "\n".join(lines) + "\n", file=sys.stderr)
