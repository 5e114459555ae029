"""A database that is closed, on both: no connection outlives it."""

import threading

from sqlalchemy import Connection, text

from frugal.service.config import Settings
from frugal.service.store.db import open_database


def test_a_thread_that_still_reads_at_the_close_gives_back_a_connection_that_is_then_closed(database_url: str) -> None:
    database = open_database(Settings(database=database_url))
    reading, closed = threading.Event(), threading.Event()
    raw = []

    def read(db: Connection) -> int:
        raw.append(db.connection.driver_connection)
        reading.set()
        assert closed.wait(100)
        return int(db.execute(text("SELECT 1")).scalar_one())

    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(database.read(read)))
    reader.start()
    assert reading.wait(100)
    database.close()
    closed.set()
    reader.join()
    assert found == [1]
    assert is_closed(raw[0])


def is_closed(connection: object) -> bool:
    if hasattr(connection, "closed"):
        return bool(connection.closed)
    try:
        connection.execute("SELECT 1")  # type: ignore[attr-defined]
    except Exception as error:
        return "closed" in str(error)
    return False
