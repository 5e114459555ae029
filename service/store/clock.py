"""The database's own time: processes on several machines agree on it, and none of their own clocks decides what is over.

An SQLite file's is its machine's, as SQLite tells it.
"""

from datetime import datetime

from sqlalchemy import Connection, text

TOLD_BY_SQLITE = "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'"
TOLD_BY_POSTGRESQL = "SELECT clock_timestamp()"


def clock(db: Connection) -> datetime:
    """What time it is."""
    if db.dialect.name == "postgresql":
        told: datetime = db.execute(text(TOLD_BY_POSTGRESQL)).scalar_one()
        return told
    return datetime.fromisoformat(db.execute(text(TOLD_BY_SQLITE)).scalar_one())
