"""The ledger that fits a database."""

from frugal.service.config import Settings
from frugal.service.sessions.ledger import Ledger
from frugal.service.sessions.postgres import PostgresLedger
from frugal.service.sessions.sqlite import SqliteLedger
from frugal.service.store.db import PostgresDatabase, SqliteDatabase


async def open_ledger(database: SqliteDatabase | PostgresDatabase, settings: Settings) -> Ledger:
    if isinstance(database, SqliteDatabase):
        return SqliteLedger(database)
    return await PostgresLedger.connect(settings.address, settings.pool, settings.max_queue)
