"""`frugal worker`: trains what is queued in a PostgreSQL database, until it is told to stop. Start as many as there are machines."""

import argparse
import logging.config
import os
import signal
import sys
from types import FrameType

from frugal.service.config import from_environment, tell_unknown
from frugal.service.logs import configuration
from frugal.service.store.db import open_database
from frugal.service.store.migrating import prepared
from frugal.service.training.supervising import Supervisor


def worker(options: argparse.Namespace) -> str:
    settings = from_environment(database=options.database)
    tell_unknown()
    if settings.sqlite_file:
        raise ValueError(
            "an SQLite file has one process, and frugal serve trains in it: no worker is needed. For workers use --database postgresql://..."
        )
    logging.config.dictConfig(configuration(settings.log_level))
    print(f"frugal: database {settings.shown_database}", file=sys.stderr)
    with prepared(settings):
        pass
    database = open_database(settings)
    supervisor = Supervisor(database, settings)

    def stop(number: int, frame: FrameType | None) -> None:
        supervisor.stop.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(f"frugal: worker {os.getpid()} waits for jobs", file=sys.stderr)
    try:
        supervisor.run()
    finally:
        database.close()
    return ""
