"""`frugal serve`: check, migrate, then run the server, in one process or several."""

import argparse
import os
import signal
import socket
import sys
from contextlib import suppress

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from frugal.models.warm import warm_up
from frugal.service.app import create
from frugal.service.config import Settings, from_environment, is_loopback, tell_unknown, to_environment
from frugal.service.connections import Guarded, open_files
from frugal.service.connections.listening import bind, close, when_listening
from frugal.service.example import curl_lines, publish_example
from frugal.service.logs import configuration
from frugal.service.metrics import share_between_processes, stop_sharing
from frugal.service.store.db import lock_of
from frugal.service.store.key_rows import any_admin, any_key
from frugal.service.store.lock import FileLock
from frugal.service.store.migrating import prepared
from frugal.service.warming import compile_later

GRACE = 30  # seconds that requests in flight have to finish when the server is told to stop
FAILED = 3  # the exit code of a server that could not start, as uvicorn has it


def serve(options: argparse.Namespace) -> str:
    settings = from_environment(host=options.host, port=options.port, workers=options.workers, database=options.database)
    tell_unknown()
    check(settings)
    lock = lock_of(settings.sqlite_file) if settings.sqlite_file else None  # held from here to the end: no other process gets between
    sockets = bind(settings.host, settings.port)
    compiler = compile_later()
    try:
        lines = prepare(settings, lock, url_of(sockets[0]), options.example)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises the signal again when it has stopped: that is no failure
        when_listening(sockets[0], lambda: print("\n".join(lines), file=sys.stderr, flush=True))
        if settings.workers == 1:
            run(settings, create(settings, lock), sockets)
        else:
            run_workers(settings, sockets)
    finally:
        close(sockets)
        if compiler is not None:
            compiler.end()
    return ""


def run(settings: Settings, app: FastAPI | str, sockets: list[socket.socket]) -> None:
    open_files(settings.max_connections)
    config = uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=settings.workers,
        http=Guarded,
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        log_config=configuration(settings.log_level),
    )
    if settings.workers > 1:
        Multiprocess(config, sockets=sockets).run()
        return
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):  # it has stopped in good order, and raises the signal again
        server.run(sockets)
    if not server.started:
        sys.exit(FAILED)


def run_workers(settings: Settings, sockets: list[socket.socket]) -> None:
    """Several processes, each with an app of its own from the environment; their metrics are in a folder that they share."""
    os.environ.update(to_environment(settings))
    shared = share_between_processes()
    print(f"frugal: {warm_up('deciding')}", file=sys.stderr)  # once here, or every worker would compile, and be taken for dead meanwhile
    try:
        run(settings, "frugal.service.app:create", sockets)
    finally:
        stop_sharing(shared)


def check(settings: Settings) -> None:
    """Refuse what cannot work, with a sentence."""
    if settings.workers > 1 and settings.sqlite_file:
        raise ValueError(
            f"{settings.workers} workers need PostgreSQL, because an SQLite file has one process: "
            "leave --workers out, or set --database postgresql://..."
        )


def prepare(settings: Settings, lock: FileLock | None, url: str, example: bool) -> list[str]:
    """Tables as this release wants them, and the example if it is asked for; gives what to say once the server listens."""
    print(f"frugal: database {settings.shown_database}", file=sys.stderr)
    with prepared(settings, lock) as database:
        if not is_loopback(settings.host) and not settings.admin_key and not database.read(any_admin):
            raise ValueError(
                f"--host {settings.host} lets others in, and there is no admin key: make one first with "
                "`frugal keys create --owner NAME --role admin`, or set FRUGAL_ADMIN_KEY"
            )
        if example:
            print(f"frugal: {publish_example(database)}", file=sys.stderr)
        is_open = is_loopback(settings.host) and not settings.admin_key and not database.read(any_key)
        lines = curl_lines(database, url) if is_open else []  # else they want another name, or a key
    session = ["frugal: a whole session, line by line:", "", *lines, ""] if lines else []
    return [f"frugal: listening on {url} (Ctrl-C stops it)", *session]


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
