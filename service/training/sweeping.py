"""What training forgets: jobs that are over, with their events, and bytes that were sent and came to nothing. Versions stay."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from frugal.service.config import Settings
from frugal.service.store import archives, job_rows
from frugal.service.store.db import Database
from frugal.service.store.threads import in_thread

AT_ONCE = 1000  # rows in a transaction


def sweep(database: Database, settings: Settings) -> bool:
    """One turn, in a few short transactions; True where there is more to do."""
    database.write(lambda db: archives.condemn_unused(db, timedelta(seconds=settings.staged_retention)))
    more = archives.drop_condemned(database)
    if settings.job_retention:
        kept = timedelta(seconds=settings.job_retention)
        more |= bool(database.write(lambda db: job_rows.drop_past(db, kept, AT_ONCE)))
    return more


async def sweep_forever(database: Database, settings: Settings, failed: Callable[[Exception], None]) -> None:
    """Sweep until cancelled; a sweep that fails, for whatever reason, is told and tried again at the next."""
    while True:
        await asyncio.sleep(settings.sweep_every)
        try:
            while await in_thread(sweep, database, settings):
                pass
        except Exception as error:
            failed(error)
