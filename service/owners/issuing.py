"""Keys: made, listed, revoked. One is shown once and stored as SHA-256."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection

from frugal.service.errors import Conflict, InvalidRequest, KeyNotFound, Unauthorized
from frugal.service.keyform import digest, new_key
from frugal.service.registry.versions import NAME
from frugal.service.store import audit, key_rows
from frugal.service.store.audit import Actor
from frugal.service.store.clock import clock
from frugal.service.store.db import Database
from frugal.service.store.ids import new_id
from frugal.service.store.tables import iso, now

SETTINGS = UUID(int=0)  # the id of the admin key in the settings
Role = Literal["client", "admin"]
ROLES: tuple[Role, ...] = ("client", "admin")


@dataclass(frozen=True, slots=True)
class Key:
    """What is known of a key without knowing it."""

    id: UUID
    owner: str
    role: Role


def create(database: Database, actor: Actor, owner: str, role: Role, expires_at: datetime | None = None) -> dict[str, Any]:
    """Make a key for an owner; the reply is the only place where it stands in the clear."""
    if not re.fullmatch(NAME, owner):
        raise InvalidRequest("owner: expected 1 to 64 lower case letters, digits, dots, dashes and underscores", pattern=NAME)
    if role not in ROLES:
        raise InvalidRequest(f"role: expected {' or '.join(ROLES)}")
    key, id = new_key(), new_id()
    row = {"id": id, "sha256": digest(key), "owner": owner, "role": role, "created_at": now(), "expires_at": expires_at}

    def insert(db: Connection) -> None:
        _begin(db, actor)
        if expires_at is not None and expires_at <= clock(db):
            raise InvalidRequest("expires_at: expected a time to come")
        if role != "admin" and actor.key_id is None and not key_rows.any_admin(db):
            raise Conflict("The first key must be an admin key: with a client key alone nobody could make or revoke another.")
        key_rows.insert_key(db, row)
        audit.record(db, actor, "key.create", str(id), {"owner": owner, "role": role})

    database.write(insert)
    return {"key": key, **shown(row | {"revoked_at": None})}


def revoke(database: Database, actor: Actor, id: UUID) -> None:
    """Let a key count no more, from at most five seconds on. Revoking it twice is no error."""

    def end(db: Connection) -> None:
        _begin(db, actor)
        for_ever = key_rows.any_admin(db, for_ever=True)
        if not key_rows.revoke_key(db, id):
            raise KeyNotFound("There is no key with this id: GET /v1/admin/keys lists them.")
        if actor.key_id not in (None, SETTINGS) and not key_rows.any_admin(db, for_ever):
            last = "the last admin key that does not expire" if for_ever else "the last admin key"
            raise Conflict(f"This is {last}: make another one first, or nobody could make or revoke any.")
        audit.record(db, actor, "key.revoke", str(id), {})

    database.write(end)


def _begin(db: Connection, actor: Actor) -> None:
    """Lock what the rules about keys read. Whoever came in without a key, while there was none, has no say once there is one."""
    key_rows.lock(db)
    if actor.visitor and key_rows.any_key(db):
        raise Unauthorized("Somebody made the first key a moment ago. Send yours: Authorization: Bearer frgl_...")


def listed(database: Database, after: UUID | None, limit: int) -> list[dict[str, Any]]:
    """Keys in the order they were made, without what they are."""
    return [shown(row._mapping) for row in database.read(lambda db: key_rows.listed(db, after, limit))]


def shown(row: Any) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "owner": row["owner"],
        "role": row["role"],
        "created_at": iso(row["created_at"]),
        "expires_at": iso(row["expires_at"]) if row["expires_at"] else None,
        "revoked_at": iso(row["revoked_at"]) if row["revoked_at"] else None,
    }
