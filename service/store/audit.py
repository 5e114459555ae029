"""The audit log: who published, moved, retired, revoked, deleted. Written in the transaction of the deed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, insert, select

from frugal.service.store.ids import new_id
from frugal.service.store.tables import audit_log, now


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it: an owner, and the key that was used (none in open mode, or on the machine itself)."""

    owner: str
    key_id: UUID | None = None
    request_id: str | None = None

    @property
    def visitor(self) -> bool:
        """Whether it came over HTTP without a key, as in open mode."""
        return self.key_id is None and self.request_id is not None


def record(db: Connection, actor: Actor, action: str, subject: str, details: Mapping[str, Any]) -> None:
    row = {"id": new_id(), "at": now(), "owner": actor.owner, "key_id": actor.key_id, "request_id": actor.request_id}
    db.execute(insert(audit_log).values(**row, action=action, subject=subject, details=dict(details)))


def listed(db: Connection, before: UUID | None, limit: int) -> list[Any]:
    """Newest first."""
    query = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
    return list(db.execute(query if before is None else query.where(audit_log.c.id < before)))
