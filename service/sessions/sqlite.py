"""The ledger on SQLite: reads on a connection of its own, writes through the one writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from frugal.service.errors import DatabaseAway
from frugal.service.sessions.clock import Clock, seconds
from frugal.service.sessions.ledger import (
    OPENING,
    IdempotencyKey,
    filled_lines,
    new_lines,
    prediction_json,
    session_of,
    stop_columns,
    value_json,
)
from frugal.service.sessions.state import Answer, Session
from frugal.service.store.clock import TOLD_BY_SQLITE
from frugal.service.store.db import PATIENCE, SqliteDatabase
from frugal.service.store.tables import iso
from frugal.service.store.threads import in_thread

COLUMNS = """
s.name, s.number, s.status, s.revision, s.reference, s.seed, s.aim, s.confidence, s.stop_confidence, s.stop_cap,
s.budget, s.spent,
(SELECT json_group_array(json(line)) FROM (
   SELECT json_array(a.feature, a.status, json(a.value), a.cost, a.bought, a.source, a.at) AS line
   FROM answers a WHERE a.session_id = s.id ORDER BY a.position)),
s.prediction, s.created_at, s.updated_at, s.expires_at
"""

READ = f"SELECT {COLUMNS} FROM sessions s WHERE s.id = ? AND s.owner = ?"

# The first page begins after the greatest id; a status that is not asked for is each session's own.
PAGE = f"""
SELECT s.id, {COLUMNS} FROM sessions s
WHERE s.owner = ? AND s.id < coalesce(?, 'g') AND s.status = coalesce(?, s.status) ORDER BY s.id DESC LIMIT ?
"""

APPEND = """
UPDATE sessions SET spent = spent + :charge, revision = revision + 1, status = :status, prediction = :prediction, updated_at = :now
WHERE id = :id AND revision = :seen AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + :charge <= budget)
"""

ADD = "INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

FILL = "UPDATE answers SET status = ?, value = ?, at = ? WHERE session_id = ? AND feature = ? AND status = 'pending'"

OPEN = """
INSERT INTO sessions (id, owner, name, number, status, revision, reference, seed, aim, confidence, stop_confidence, stop_cap,
                      budget, spent, prediction, created_at, updated_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)
"""

KEY = """
INSERT INTO idempotency_keys (owner, route, key, body_sha256, session_id, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, route, key) DO NOTHING
"""

OPENED_WITH = "SELECT session_id, body_sha256 FROM idempotency_keys WHERE owner = ? AND route = ? AND key = ?"


class SqliteLedger:
    def __init__(self, database: SqliteDatabase) -> None:
        self.database, self.writer, self.files = database, database.writer, database.files
        # Read on the event loop: one row by its key takes less than a hop to a thread and back, and readers of a WAL never wait.
        self.reader = database.reader()
        self.clock = Clock()
        self.now = self.clock.now
        self._hear()

    async def read(self, id: UUID, owner: str) -> Session | None:
        row = self._fetch(READ, (id.hex, owner))
        return None if row is None else _session(id, owner, row)

    async def page(self, owner: str, before: UUID | None, limit: int, status: str | None) -> list[Session]:
        values = (owner, before and before.hex, status, limit)
        rows = await in_thread(self.database.read, lambda db: db.exec_driver_sql(PAGE, values).all())
        return [_session(UUID(row[0]), owner, row[1:]) for row in rows]

    async def open(self, session: Session, key: IdempotencyKey | None) -> bool:
        return await self.writer.arun(lambda db: _open(db, session, key), PATIENCE)

    async def opened_with(self, owner: str, key: str) -> tuple[UUID, str] | None:
        row = self._fetch(OPENED_WITH, (owner, OPENING, key))
        return None if row is None else (UUID(row[0]), row[1])

    async def append(self, before: Session, after: Session) -> bool:
        return await self.writer.arun(lambda db: _append(db, before, after), PATIENCE)

    async def ping(self) -> None:
        self.files.check()
        self._hear()

    def connections(self) -> dict[str, int]:
        return {"reading": 1, "writing": 1}

    async def close(self) -> None:
        self.reader.close()

    def _hear(self) -> None:
        asked = seconds()
        self.clock.hear(datetime.fromisoformat(self._fetch(TOLD_BY_SQLITE, ())[0]), asked)

    def _fetch(self, sql: str, values: tuple[Any, ...]) -> Any:
        try:
            return self.reader.execute(sql, values).fetchone()
        except sqlite3.DatabaseError as error:
            raise DatabaseAway() from error


def _session(id: UUID, owner: str, row: Sequence[Any]) -> Session:
    return session_of(id, owner, (*row[:-3], *map(datetime.fromisoformat, row[-3:])))


def _open(db: sqlite3.Connection, session: Session, key: IdempotencyKey | None) -> bool:
    db.execute(
        OPEN,
        (
            session.id.hex,
            session.owner,
            session.name,
            session.number,
            session.status,
            session.revision,
            session.reference,
            session.seed,
            session.aim,
            session.confidence,
            *stop_columns(session.stop),
            session.budget,
            prediction_json(session.prediction),
            iso(session.created_at),
            iso(session.updated_at),
            iso(session.expires_at),
        ),
    )
    db.executemany(ADD, [_line(session.id, position, line) for position, line in enumerate(session.answers)])
    if key is not None:
        keyed = db.execute(KEY, (session.owner, OPENING, key.key, key.body_sha256, session.id.hex, iso(session.created_at)))
        if not keyed.rowcount:
            db.execute("DELETE FROM sessions WHERE id = ?", (session.id.hex,))  # the key's first session stands
            return False
    return True


def _append(db: sqlite3.Connection, before: Session, after: Session) -> bool:
    change = {
        "id": before.id.hex,
        "seen": before.revision,
        "charge": after.spent - before.spent,
        "status": after.status,
        "prediction": prediction_json(after.prediction),
        "now": iso(after.updated_at),
    }
    if not db.execute(APPEND, change).rowcount:
        return False
    for line in filled_lines(before, after):
        db.execute(FILL, (line.status, value_json(line), iso(line.at), before.id.hex, line.feature))
    for position, line in new_lines(before, after):
        db.execute(ADD, _line(before.id, position, line))
    return True


def _line(id: UUID, position: int, line: Answer) -> tuple[Any, ...]:
    return (id.hex, line.feature, position, line.status, value_json(line), line.cost, line.bought, line.source, iso(line.at))
