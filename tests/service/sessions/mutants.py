"""The two wrong ways to write a charge, kept so that the tests of concurrency can show that they would catch them.

1. read, check, insert, update: two steps read the same `spent`, both find that they fit, both are charged.
2. one statement whose insert does not depend on the budget test: the update is refused, the charge is written all the same.
"""

from contextlib import asynccontextmanager

from frugal.service.sessions.ledger import new_lines, prediction_json, value_json
from frugal.service.sessions.postgres import PostgresLedger
from frugal.service.sessions.sqlite import ADD, SqliteLedger, _line
from frugal.service.sessions.sqlite import APPEND as GUARDED
from frugal.service.sessions.state import Session
from frugal.service.store.db import PATIENCE
from frugal.service.store.tables import iso

INSERT = """
INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'answer', $8)
"""


@asynccontextmanager
async def lent(pool):
    db = await pool._take(False)
    try:
        yield db
    finally:
        pool._give(db)


def _insert_values(after: Session, position: int, line) -> tuple:
    return (after.id, line.feature, position, line.status, value_json(line), line.cost, line.bought, line.at)


class ReadCheckWritePostgres(PostgresLedger):
    async def append(self, before: Session, after: Session) -> bool:
        charge = after.spent - before.spent
        async with lent(self.pool) as db, db.transaction():
            spent, budget = await db.fetchrow("SELECT spent, budget FROM sessions WHERE id = $1", before.id)
            if budget is not None and spent + charge > budget:
                return False
            for position, line in new_lines(before, after):
                await db.execute(INSERT, *_insert_values(after, position, line))
            update = "UPDATE sessions SET spent = $2, revision = revision + 1, status = $3, prediction = $4 WHERE id = $1"
            await db.execute(update, before.id, spent + charge, after.status, prediction_json(after.prediction))
        return True


class InsertAnywayPostgres(PostgresLedger):
    async def append(self, before: Session, after: Session) -> bool:
        [(position, line)] = new_lines(before, after)
        statement = """
        WITH u AS (
          UPDATE sessions SET spent = spent + $6, revision = revision + 1, status = $9, prediction = $10
          WHERE id = $1 AND revision = $11 AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + $6 <= budget)
        ) """
        async with lent(self.pool) as db:
            values = _insert_values(after, position, line)
            await db.execute(statement + INSERT, *values, after.status, prediction_json(after.prediction), before.revision)
        return True


class ReadCheckWriteSqlite(SqliteLedger):
    async def append(self, before: Session, after: Session) -> bool:
        charge = after.spent - before.spent
        spent, budget = self._fetch("SELECT spent, budget FROM sessions WHERE id = ?", (before.id.hex,))
        if budget is not None and spent + charge > budget:
            return False

        def write(db):
            for position, line in new_lines(before, after):
                db.execute(ADD, _line(before.id, position, line))
            update = "UPDATE sessions SET spent = ?, revision = revision + 1, status = ?, prediction = ? WHERE id = ?"
            db.execute(update, (spent + charge, after.status, prediction_json(after.prediction), before.id.hex))
            return True

        return await self.writer.arun(write, PATIENCE)


class InsertAnywaySqlite(SqliteLedger):
    async def append(self, before: Session, after: Session) -> bool:
        change = {
            "id": before.id.hex,
            "seen": before.revision,
            "charge": after.spent - before.spent,
            "status": after.status,
            "prediction": prediction_json(after.prediction),
            "now": iso(after.updated_at),
        }

        def write(db):
            db.execute(GUARDED, change)
            for position, line in new_lines(before, after):
                db.execute(ADD, _line(before.id, position, line))
            return True

        return await self.writer.arun(write, PATIENCE)


MUTANTS = {
    "sqlite": [ReadCheckWriteSqlite, InsertAnywaySqlite],
    "postgresql": [ReadCheckWritePostgres, InsertAnywayPostgres],
}
