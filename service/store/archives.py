"""Archives: the bytes of versions, in chunks, so that no statement carries more than 1 MiB."""

import hashlib
from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import Connection, Executable, delete, insert, select

from service.store.db import Database
from service.store.ids import new_id
from service.store.tables import archive_chunks, archives, now, versions

CHUNK = 1 << 20
ABANDONED = timedelta(days=1)  # staged, and no version came of it


def stage(database: Database, data: bytes) -> UUID:
    """Store bytes that a version will point to, chunk by chunk, each in its own transaction."""
    id = new_id()
    row = {"id": id, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "created_at": now()}
    database.write(partial(_execute, insert(archives).values(**row)))
    for position, start in enumerate(range(0, len(data), CHUNK)):
        add = insert(archive_chunks).values(archive_id=id, position=position, bytes=data[start : start + CHUNK])
        database.write(partial(_execute, add))
    return id


def _execute(statement: Executable, db: Connection) -> None:
    db.execute(statement)


def fetch(db: Connection, id: UUID) -> bytes:
    """The bytes again; ValueError if they are not what was stored."""
    sha256 = db.execute(select(archives.c.sha256).where(archives.c.id == id)).scalar_one()
    parts = db.execute(select(archive_chunks.c.bytes).where(archive_chunks.c.archive_id == id).order_by(archive_chunks.c.position))
    data = b"".join(part for (part,) in parts)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"archive {id} is damaged: its bytes do not match their SHA-256")
    return data


def drop_abandoned(db: Connection) -> None:
    used = select(versions.c.archive_id)
    db.execute(delete(archives).where(archives.c.created_at < now() - ABANDONED, archives.c.id.not_in(used)))
