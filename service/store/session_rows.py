"""Sessions off the hot path: deleting, counting, and what is due for the sweep."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, delete, func, not_, or_, select

from frugal.service.store.clock import clock
from frugal.service.store.tables import OVER, RUNNING, idempotency_keys, sessions

KEYS_KEPT = timedelta(hours=24)


def drop(db: Connection, id: UUID, owner: str) -> bool:
    """Delete a session with its answers and keys; False where there is none."""
    return bool(db.execute(delete(sessions).where(sessions.c.id == id, sessions.c.owner == owner)).rowcount)


def due(db: Connection, limit: int, after: Any, without: Collection[tuple[str, int]]) -> list[Any]:
    """Sessions that run past their time, those due longest first, from the one after `after` on; none of versions in `without`."""
    query = select(sessions.c.id, sessions.c.owner, sessions.c.name, sessions.c.number, sessions.c.expires_at)
    query = query.where(sessions.c.status.in_(RUNNING), sessions.c.expires_at <= clock(db))
    if after is not None:
        later = and_(sessions.c.expires_at == after.expires_at, sessions.c.id > after.id)
        query = query.where(sessions.c.expires_at >= after.expires_at, or_(sessions.c.expires_at > after.expires_at, later))
    for name, number in without:
        query = query.where(not_(and_(sessions.c.name == name, sessions.c.number == number)))
    return list(db.execute(query.order_by(sessions.c.expires_at, sessions.c.id).limit(limit)))


def count_running(db: Connection, owner: str, most: int) -> int:
    """How many open sessions an owner has, counted no further than `most`."""
    running = select(sessions.c.id).where(sessions.c.owner == owner, sessions.c.status.in_(RUNNING)).limit(most)
    return db.execute(select(func.count()).select_from(running.subquery())).scalar_one()


def drop_past(db: Connection, kept: timedelta, most: int) -> int:
    """Delete sessions that are over and whose time to live ended that long ago; says how many."""
    past = select(sessions.c.id).where(sessions.c.status.in_(OVER), sessions.c.expires_at <= clock(db) - kept).limit(most)
    return db.execute(delete(sessions).where(sessions.c.id.in_(past))).rowcount


def drop_old_keys(db: Connection) -> None:
    db.execute(delete(idempotency_keys).where(idempotency_keys.c.created_at < clock(db) - KEYS_KEPT))
