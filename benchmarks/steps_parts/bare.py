"""The bare endpoint that benchmarks/steps.py measures an answer step against: it parses the same body and runs one UPDATE ... INSERT.

Same framework, same driver, same tables, same pool and, on SQLite, the same writer; no reading, no pricing, no decision.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import UUID

import asyncpg
from fastapi import Body, FastAPI, HTTPException

from frugal.service.api.sessions import AnswerBody
from frugal.service.config import Settings, from_environment
from frugal.service.store.db import PATIENCE, SqliteDatabase
from frugal.service.store.tables import iso, now

CHARGE = 1_000_000  # it has no price list: every answer costs one

POSTGRES = """
WITH u AS (
  UPDATE sessions SET spent = spent + $2, revision = revision + 1, updated_at = now()
  WHERE id = $1 AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + $2 <= budget)
  RETURNING id, revision
)
INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
SELECT u.id, $3, u.revision - 2, 'value', $4, $2, true, 'answer', now() FROM u
RETURNING position
"""

UPDATE = """
UPDATE sessions SET spent = spent + :charge, revision = revision + 1, updated_at = :now
WHERE id = :id AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + :charge <= budget)
"""

INSERT = """
INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
SELECT :id, :feature, revision - 2, 'value', :value, :charge, true, 'answer', :now FROM sessions WHERE id = :id
RETURNING position
"""

Write = Callable[[UUID, str, str], Awaitable[int | None]]


def create() -> FastAPI:
    app = FastAPI(lifespan=_lifespan)

    @app.get("/readyz")
    async def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/v1/sessions/{id}/answers")
    async def answer(id: UUID, body: Annotated[AnswerBody, Body()]):  # no return type, or FastAPI would validate the reply too
        position = await app.state.write(id, body.feature, json.dumps(body.value))
        if position is None:
            raise HTTPException(409)
        return {"id": id, "position": position}

    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings = from_environment()
    async with _sqlite(settings) if settings.sqlite_file else _postgres(settings) as write:
        app.state.write = write
        yield


@asynccontextmanager
async def _postgres(settings: Settings) -> AsyncIterator[Write]:
    async with asyncpg.create_pool(settings.database, min_size=1, max_size=settings.pool, reset=_nothing) as pool:

        async def write(id: UUID, feature: str, value: str) -> int | None:
            async with pool.acquire() as db:
                return await db.fetchval(POSTGRES, id, CHARGE, feature, value)

        yield write


@asynccontextmanager
async def _sqlite(settings: Settings) -> AsyncIterator[Write]:
    assert settings.sqlite_file is not None
    database = SqliteDatabase(settings.sqlite_file)

    async def write(id: UUID, feature: str, value: str) -> int | None:
        values = {"id": id.hex, "charge": CHARGE, "now": iso(now()), "feature": feature, "value": value}

        def work(db: Any) -> int | None:
            return db.execute(INSERT, values).fetchone()[0] if db.execute(UPDATE, values).rowcount else None

        return await database.writer.arun(work, PATIENCE)

    try:
        yield write
    finally:
        database.close()


async def _nothing(_: Any) -> None:
    """The service resets no connection either: it is one more round trip."""
