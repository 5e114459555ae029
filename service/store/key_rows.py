"""Keys: rows in, rows out. Only hashes are here."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, exists, insert, or_, select, text, update

from frugal.service.store.clock import clock
from frugal.service.store.tables import keys, now


def lock(db: Connection) -> None:
    """Nobody else changes keys before this transaction ends: a rule about all of them (the first, the last) must not be judged on keys
    that are being revoked. Reading them goes on. SQLite has one writer anyway."""
    if db.dialect.name == "postgresql":
        db.execute(text("LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE"))


def insert_key(db: Connection, row: Mapping[str, Any]) -> None:
    db.execute(insert(keys).values(**row))


def by_hash(db: Connection, sha256: str) -> Any:
    """The key of this hash that is not revoked."""
    return db.execute(select(keys).where(keys.c.sha256 == sha256, keys.c.revoked_at.is_(None))).one_or_none()


def any_key(db: Connection) -> bool:
    """Whether a key was ever made: open mode ends with the first, and revoking all does not open the doors again."""
    return bool(db.execute(select(exists().select_from(keys))).scalar())


def any_admin(db: Connection, for_ever: bool = False) -> bool:
    """Whether there is an admin key that counts now; `for_ever`: and does not expire."""
    lasting = keys.c.expires_at.is_(None) if for_ever else or_(keys.c.expires_at.is_(None), keys.c.expires_at > clock(db))
    return bool(db.execute(select(exists().where(keys.c.role == "admin", keys.c.revoked_at.is_(None), lasting))).scalar())


def listed(db: Connection, after: UUID | None, limit: int) -> list[Any]:
    query = select(keys).order_by(keys.c.id).limit(limit)
    return list(db.execute(query if after is None else query.where(keys.c.id > after)))


def revoke_key(db: Connection, id: UUID) -> bool:
    """Whether there is such a key; revoking it twice keeps the first time."""
    db.execute(update(keys).where(keys.c.id == id, keys.c.revoked_at.is_(None)).values(revoked_at=now()))
    return bool(db.execute(select(exists().where(keys.c.id == id))).scalar())
