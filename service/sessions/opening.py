"""The ledger that fits a database."""

from service.config import Settings
from service.sessions.ledger import Ledger
from service.sessions.postgres import PostgresLedger
from service.sessions.sqlite import SqliteLedger
from service.store.db import PostgresDatabase, SqliteDatabase


async def open_ledger(database: SqliteDatabase | PostgresDatabase, settings: Settings) -> Ledger:
    if isinstance(database, SqliteDatabase):
        return SqliteLedger(database)
    return await PostgresLedger.connect(settings.address, settings.pool, settings.max_queue)
