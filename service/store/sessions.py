"""Sessions off the hot path: an owner's list, deleting, and what is due for the sweep."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, delete, func, select

from service.store.tables import OVER, RUNNING, idempotency_keys, now, sessions

KEYS_KEPT = timedelta(hours=24)


def ids_of(db: Connection, owner: str, before: UUID | None, limit: int, status: str | None) -> Sequence[UUID]:
    """The owner's sessions, newest first."""
    query = select(sessions.c.id).where(sessions.c.owner == owner).order_by(sessions.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(sessions.c.id < before)
    if status is not None:
        query = query.where(sessions.c.status == status)
    return db.execute(query).scalars().all()


def drop(db: Connection, id: UUID, owner: str) -> bool:
    """Delete a session with its answers and keys; False where there is none."""
    return bool(db.execute(delete(sessions).where(sessions.c.id == id, sessions.c.owner == owner)).rowcount)


def due(db: Connection, limit: int) -> list[tuple[UUID, str]]:
    """Sessions that run past their time."""
    query = select(sessions.c.id, sessions.c.owner).where(sessions.c.status.in_(RUNNING), sessions.c.expires_at <= now())
    return [(id, owner) for id, owner in db.execute(query.order_by(sessions.c.expires_at).limit(limit))]


def count_running(db: Connection, owner: str, most: int) -> int:
    """How many open sessions an owner has, counted no further than `most`."""
    running = select(sessions.c.id).where(sessions.c.owner == owner, sessions.c.status.in_(RUNNING)).limit(most)
    return db.execute(select(func.count()).select_from(running.subquery())).scalar_one()


def drop_past(db: Connection, kept: timedelta, most: int) -> int:
    """Delete sessions that are over and whose time to live ended that long ago; says how many."""
    past = select(sessions.c.id).where(sessions.c.status.in_(OVER), sessions.c.expires_at <= now() - kept).limit(most)
    return db.execute(delete(sessions).where(sessions.c.id.in_(past))).rowcount


def drop_old_keys(db: Connection, at: datetime | None = None) -> None:
    db.execute(delete(idempotency_keys).where(idempotency_keys.c.created_at < (at or now()) - KEYS_KEPT))
