"""The ledger on PostgreSQL: asyncpg, one prepared statement per read and one per write."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg

from frugal.service.address import Address
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
from frugal.service.sessions.pool import Pool
from frugal.service.sessions.state import Session
from frugal.service.store.clock import TOLD_BY_POSTGRESQL

COLUMNS = """
s.name, s.number, s.status, s.revision, s.reference, s.seed, s.aim, s.confidence, s.stop_confidence, s.stop_cap,
s.budget, s.spent,
(SELECT json_agg(json_build_array(a.feature, a.status, a.value, a.cost, a.bought, a.source, a.at) ORDER BY a.position)
 FROM answers a WHERE a.session_id = s.id),
s.prediction, s.created_at, s.updated_at, s.expires_at
"""

READ = f"SELECT {COLUMNS} FROM sessions s WHERE s.id = $1 AND s.owner = $2"

# The first page begins after the greatest id; a status that is not asked for is each session's own.
PAGE = f"""
SELECT s.id, {COLUMNS} FROM sessions s
WHERE s.owner = $1 AND s.id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') AND s.status = coalesce($4::varchar, s.status)
ORDER BY s.id DESC LIMIT $3
"""

# The lines depend on the updated row `u`: where the guard holds nothing is updated, and nothing is filled or inserted either.
APPEND = """
WITH u AS (
  UPDATE sessions SET spent = spent + $3, revision = revision + 1, status = $4, prediction = $5, updated_at = $6
  WHERE id = $1 AND revision = $2 AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + $3 <= budget)
  RETURNING id
), filled AS (
  UPDATE answers a SET status = g.status, value = g.value, at = $6
  FROM u, unnest($7::text[], $8::text[], $9::json[]) AS g(feature, status, value)
  WHERE a.session_id = u.id AND a.feature = g.feature AND a.status = 'pending'
), added AS (
  INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
  SELECT u.id, g.feature, g.position, g.status, g.value, g.cost, g.bought, 'answer', $6
  FROM u, unnest($10::text[], $11::int[], $12::text[], $13::json[], $14::bigint[], $15::bool[])
       AS g(feature, position, status, value, cost, bought)
)
SELECT count(*) FROM u
"""

# The commonest write, one new answer, without the arrays: they cost a tenth of the statement's time.
APPEND_ONE = """
WITH u AS (
  UPDATE sessions SET spent = spent + $3, revision = revision + 1, status = $4, prediction = $5, updated_at = $6
  WHERE id = $1 AND revision = $2 AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + $3 <= budget)
  RETURNING id
)
INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
SELECT u.id, $7, $8, $9, $10, $3, $11, 'answer', $6 FROM u
RETURNING 1
"""

OPEN = """
WITH opened AS (
  INSERT INTO sessions (id, owner, name, number, status, revision, reference, seed, aim, confidence, stop_confidence, stop_cap,
                        budget, spent, prediction, created_at, updated_at, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14, $15, $15, $16)
), keyed AS (
  INSERT INTO idempotency_keys (owner, route, key, body_sha256, session_id, created_at)
  SELECT $2, $17::varchar, $18::varchar, $19::varchar, $1, $15 WHERE $18::varchar IS NOT NULL
)
INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
SELECT $1, g.feature, g.position, g.status, g.value, 0, false, 'known', $15
FROM unnest($20::text[], $21::int[], $22::text[], $23::json[]) AS g(feature, position, status, value)
"""

KEY_TAKEN = "pk_idempotency_keys"

OPENED_WITH = "SELECT session_id, body_sha256 FROM idempotency_keys WHERE owner = $1 AND route = $2 AND key = $3"


class PostgresLedger:
    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.clock = Clock()
        self.now = self.clock.now

    @classmethod
    async def connect(cls, address: Address, size: int, max_queue: int) -> PostgresLedger:
        """A ledger whose database answers."""
        ledger = cls(Pool(address, size, max_queue))
        await ledger.ping()
        return ledger

    async def read(self, id: UUID, owner: str) -> Session | None:
        row = await self.pool.fetchrow(READ, id, owner)
        return None if row is None else session_of(id, owner, row)

    async def page(self, owner: str, before: UUID | None, limit: int, status: str | None) -> list[Session]:
        rows = await self.pool.fetch(PAGE, owner, before, limit, status)
        return [session_of(UUID(bytes=row[0].bytes), owner, row[1:]) for row in rows]

    async def open(self, session: Session, key: IdempotencyKey | None) -> bool:
        try:
            await self.pool.fetchrow(OPEN, *_opening(session, key))
            return True
        except asyncpg.UniqueViolationError as error:  # after waiting for a twin in flight to commit
            if error.constraint_name != KEY_TAKEN:
                raise
            return False

    async def opened_with(self, owner: str, key: str) -> tuple[UUID, str] | None:
        row = await self.pool.fetchrow(OPENED_WITH, owner, OPENING, key)
        return None if row is None else (UUID(bytes=row[0].bytes), row[1])

    async def append(self, before: Session, after: Session) -> bool:
        new, filled = new_lines(before, after), filled_lines(before, after)
        change = (before.id, before.revision, after.spent - before.spent, after.status, prediction_json(after.prediction), after.updated_at)
        if len(new) == 1 and not filled:
            position, line = new[0]
            own = (line.feature, position, line.status, value_json(line), line.bought)
            return bool(await self.pool.fetchval(APPEND_ONE, *change, *own))
        return bool(
            await self.pool.fetchval(
                APPEND,
                *change,
                [line.feature for line in filled],
                [line.status for line in filled],
                [value_json(line) for line in filled],
                [line.feature for _, line in new],
                [position for position, _ in new],
                [line.status for _, line in new],
                [value_json(line) for _, line in new],
                [line.cost for _, line in new],
                [line.bought for _, line in new],
            )
        )

    async def ping(self) -> None:
        asked = seconds()
        # before all who wait: a server under load is not a sick one
        self.clock.hear(await self.pool.fetchval(TOLD_BY_POSTGRESQL, first=True), asked)

    def connections(self) -> dict[str, int]:
        return {"idle": self.pool.idle, "busy": self.pool.made - self.pool.idle}

    async def close(self) -> None:
        await self.pool.close()


def _opening(session: Session, key: IdempotencyKey | None) -> tuple[Any, ...]:
    known = session.answers
    return (
        session.id,
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
        session.created_at,
        session.expires_at,
        OPENING,
        key.key if key else None,
        key.body_sha256 if key else None,
        [line.feature for line in known],
        list(range(len(known))),
        [line.status for line in known],
        [value_json(line) for line in known],
    )
