"""Archives: the bytes of versions and data sets, in chunks, so that no statement carries more than 1 MiB."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import Connection, Executable, delete, insert, select, update

from service.store.db import Database
from service.store.ids import new_id
from service.store.tables import archive_chunks, archives, datasets, now, versions

CHUNK = 1 << 20
ABANDONED = timedelta(days=1)  # staged, and no version came of it


def stage(database: Database, data: bytes) -> UUID:
    """Store bytes that a version will point to, chunk by chunk, each in its own transaction."""
    return stage_chunks(database, chunks(data))


def chunks(data: bytes) -> Iterator[bytes]:
    return (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))


def stage_chunks(database: Database, pieces: Iterable[bytes]) -> UUID:
    """The same for bytes that come in pieces of at most `CHUNK`."""
    id, sha256, size = new_id(), hashlib.sha256(), 0
    database.write(partial(_execute, insert(archives).values(id=id, sha256="", size=0, created_at=now())))
    for position, chunk in enumerate(pieces):
        sha256.update(chunk)
        size += len(chunk)
        database.write(partial(_execute, insert(archive_chunks).values(archive_id=id, position=position, bytes=chunk)))
    database.write(partial(_execute, update(archives).where(archives.c.id == id).values(sha256=sha256.hexdigest(), size=size)))
    return id


def _execute(statement: Executable, db: Connection) -> None:
    db.execute(statement)


def fetch(db: Connection, id: UUID) -> bytes:
    """The bytes again; ValueError if they are not what was stored."""
    return b"".join(fetch_chunks(db, id))


def fetch_chunks(db: Connection, id: UUID) -> Iterator[bytes]:
    """The same in pieces, one in memory at a time; ValueError at the end if they are not what was stored."""
    expected, sha256, position = db.execute(select(archives.c.sha256).where(archives.c.id == id)).scalar_one(), hashlib.sha256(), 0
    of = select(archive_chunks.c.bytes).where(archive_chunks.c.archive_id == id)
    while (chunk := db.execute(of.where(archive_chunks.c.position == position)).scalar()) is not None:
        sha256.update(chunk)
        yield chunk
        position += 1
    if sha256.hexdigest() != expected:
        raise ValueError(f"archive {id} is damaged: its bytes do not match their SHA-256")


def drop(db: Connection, id: UUID) -> None:
    db.execute(delete(archives).where(archives.c.id == id))


def drop_abandoned(db: Connection) -> None:
    old = archives.c.created_at < now() - ABANDONED
    unused = [archives.c.id.not_in(select(table.c.archive_id)) for table in (versions, datasets)]
    db.execute(delete(archives).where(old, *unused))


def sha256_of(db: Connection, id: UUID) -> str:
    found: str = db.execute(select(archives.c.sha256).where(archives.c.id == id)).scalar_one()
    return found
