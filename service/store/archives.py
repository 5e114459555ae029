"""Archives: the bytes of versions and data sets, in chunks, so that no statement carries more than 1 MiB."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, delete, select, text, update

from service.errors import Problem
from service.store.db import Database
from service.store.ids import new_id
from service.store.inserting import insert_new
from service.store.tables import archive_chunks, archives, datasets, now, versions

CHUNK = 1 << 20
TOGETHER = 8  # chunks in one transaction: a sync of the disk for each took longer than writing it
ABANDONED = timedelta(days=1)  # staged, and no version came of it


def stage(database: Database, data: bytes) -> UUID:
    """Store bytes that a version will point to, a few chunks in a transaction."""
    return stage_chunks(database, (data[start : start + CHUNK] for start in range(0, len(data), CHUNK)))


def stage_chunks(database: Database, chunks: Iterable[bytes]) -> UUID:
    """The same for bytes that come in pieces of at most `CHUNK`."""
    staging = Staging(database)
    try:
        pieces = iter(chunks)
        while together := list(islice(pieces, TOGETHER)):
            staging.add(together)
        staging.seal()
        return staging.id
    except BaseException:
        with suppress(Problem):  # then the sweep drops it
            staging.drop()
        raise


class Staging:
    """Bytes on their way in. Whatever fails because the database is away can be done again, also if it was done."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.id = new_id()
        self._sha256, self._size, self._position = hashlib.sha256(), 0, 0

    def add(self, chunks: Sequence[bytes]) -> None:
        """Some more, in one transaction."""

        def write(db: Connection) -> None:
            if db.dialect.name == "postgresql":  # the commit of what points here syncs all that came before it
                db.execute(text("SET LOCAL synchronous_commit TO OFF"))
            if not self._position:
                insert_new(db, archives, {"id": self.id, "sha256": "", "size": 0, "created_at": now()})
            for position, chunk in enumerate(chunks, self._position):
                insert_new(db, archive_chunks, {"archive_id": self.id, "position": position, "bytes": chunk})

        self.database.write(write)
        for chunk in chunks:
            self._sha256.update(chunk)
        self._size += sum(map(len, chunks))
        self._position += len(chunks)

    def seal(self) -> None:
        """All is there: from now on it can be fetched."""
        whole = update(archives).where(archives.c.id == self.id).values(sha256=self._sha256.hexdigest(), size=self._size)
        self.database.write(lambda db: db.execute(whole))

    def drop(self) -> None:
        """Take it back, unless something points to it."""
        self.database.write(lambda db: db.execute(delete(archives).where(archives.c.id == self.id, *_unused())))


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
    db.execute(delete(archives).where(archives.c.created_at < now() - ABANDONED, *_unused()))


def _unused() -> list[ColumnElement[bool]]:
    return [archives.c.id.not_in(select(table.c.archive_id)) for table in (versions, datasets)]


def sha256_of(db: Connection, id: UUID) -> str:
    found: str = db.execute(select(archives.c.sha256).where(archives.c.id == id)).scalar_one()
    return found
