"""Archives: the bytes of versions and data sets, in chunks, so that no statement carries more than 1 MiB.

Bytes are staged first and pointed to later, by a version or a data set. What nothing will point to is condemned, in an instant, and then
deleted a few chunks at a time: deleting 240 MB at once kept the one writer of an SQLite file for two seconds.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, delete, exists, select, text, tuple_, update

from frugal.service.errors import Busy, Problem
from frugal.service.store.db import Database
from frugal.service.store.ids import new_id
from frugal.service.store.inserting import insert_new
from frugal.service.store.tables import archive_chunks, archives, datasets, jobs, now, versions

CHUNK = 1 << 20
TOGETHER = 8  # chunks in one transaction: a sync of the disk for each took longer than writing it
PIECES = 32  # transactions that delete, one after the other: seconds, when the disk is slow
CONDEMNED = -1  # the size of bytes that are being deleted
Guard = Callable[[Connection], None]


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
    """Bytes on their way in. Whatever fails because the database is away can be done again, also if it was done.

    `guard` is called in every transaction, and raises where nothing may be written any more.
    """

    def __init__(self, database: Database, id: UUID | None = None, guard: Guard = lambda db: None) -> None:
        self.database = database
        self.id = id or new_id()
        self._guard = guard
        self._sha256, self._size, self._position = hashlib.sha256(), 0, 0

    def add(self, chunks: Sequence[bytes]) -> None:
        """Some more, in one transaction."""

        def write(db: Connection) -> None:
            if db.dialect.name == "postgresql":  # the commit of what points here syncs all that came before it
                db.execute(text("SET LOCAL synchronous_commit TO OFF"))
            self._guard(db)
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
        mine = update(archives).where(archives.c.id == self.id, archives.c.size != CONDEMNED)
        whole = mine.values(sha256=self._sha256.hexdigest(), size=self._size)

        def write(db: Connection) -> None:
            self._guard(db)
            db.execute(whole)

        self.database.write(write)

    def drop(self) -> None:
        """Take it back, unless something points to it."""
        self.database.write(lambda db: condemn(db, self.id))
        drop_condemned(self.database)


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


def point_to(db: Connection, id: UUID) -> None:
    """Whoever inserts what points to staged bytes calls this first: they are not condemned from here on. Busy if they are already."""
    if not db.execute(update(archives).where(archives.c.id == id, archives.c.size != CONDEMNED).values(created_at=now())).rowcount:
        raise Busy("What was sent has waited too long to be stored, and was deleted: send it again.")


def condemn(db: Connection, id: UUID) -> None:
    """These bytes go, unless something points to them."""
    _condemn(db, archives.c.id == id)


def condemn_unused(db: Connection, kept: timedelta = timedelta(0)) -> None:
    """Bytes that were staged that long ago go, if nothing points to them and no running job stages them."""
    staging = select(jobs.c.lease_token).where(jobs.c.status == "running")
    _condemn(db, archives.c.created_at <= now() - kept, archives.c.id.not_in(staging))


def _condemn(db: Connection, *which: ColumnElement[bool]) -> None:
    """Locked first, and judged again by a statement of its own: that sees what has come to point to them before the lock was there."""
    unused = [archives.c.id.not_in(select(table.c.archive_id)) for table in (versions, datasets)]
    found = select(archives.c.id).where(*which, *unused, archives.c.size != CONDEMNED).with_for_update()
    if ids := db.execute(found).scalars().all():
        db.execute(update(archives).where(archives.c.id.in_(ids), *unused).values(size=CONDEMNED))


def drop_condemned(database: Database) -> bool:
    """Delete what is condemned, so few chunks in a transaction that others get their turn between. True where something is left."""
    with suppress(Problem):  # a later sweep drops it
        return all(database.write(_drop_some) for _ in range(PIECES))
    return False


def _drop_some(db: Connection) -> bool:
    """Some chunks, or an archive that has none any more; False when nothing was left to do."""
    chunk = (archive_chunks.c.archive_id, archive_chunks.c.position)
    some = select(*chunk).join(archives).where(archives.c.size == CONDEMNED).limit(TOGETHER)
    if db.execute(delete(archive_chunks).where(tuple_(*chunk).in_(some))).rowcount:
        return True
    empty = ~exists().where(archive_chunks.c.archive_id == archives.c.id)
    return bool(db.execute(delete(archives).where(archives.c.size == CONDEMNED, empty)).rowcount)


def sha256_of(db: Connection, id: UUID) -> str:
    found: str = db.execute(select(archives.c.sha256).where(archives.c.id == id)).scalar_one()
    return found
