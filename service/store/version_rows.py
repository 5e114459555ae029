"""Versions and aliases: rows in, rows out."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from frugal.service.store.archives import point_to
from frugal.service.store.inserting import insert_new
from frugal.service.store.tables import aliases, archives, now, versions

BRIEF = (
    versions.c.name,
    versions.c.number,
    versions.c.created_at,
    versions.c.retired_at,
    archives.c.sha256,
    archives.c.size,
)


def insert_version(db: Connection, name: str, archive_id: UUID, description: Mapping[str, Any]) -> int:
    """The next number of this name; where a twin takes it first, the one after that."""
    point_to(db, archive_id)
    row = {"name": name, "archive_id": archive_id, "description": dict(description), "created_at": now(), "retired_at": None}
    while True:
        latest = db.execute(select(func.max(versions.c.number)).where(versions.c.name == name)).scalar()
        number: int = (latest or 0) + 1
        if insert_new(db, versions, row | {"number": number}):
            return number


def archive_of(db: Connection, name: str, number: int) -> UUID | None:
    return db.execute(select(versions.c.archive_id).where(versions.c.name == name, versions.c.number == number)).scalar()


def newest(db: Connection, name: str) -> int | None:
    """The newest version that is not retired."""
    return db.execute(select(func.max(versions.c.number)).where(versions.c.name == name, versions.c.retired_at.is_(None))).scalar()


def aliased(db: Connection, name: str, alias: str) -> int | None:
    return db.execute(select(aliases.c.number).where(aliases.c.name == name, aliases.c.alias == alias)).scalar()


def names(db: Connection, after: str, limit: int) -> list[str]:
    query = select(versions.c.name).distinct().where(versions.c.name > after).order_by(versions.c.name).limit(limit)
    return list(db.execute(query).scalars())


def versions_of(db: Connection, named: Sequence[str]) -> list[Any]:
    """All versions of these names, by name and number."""
    query = select(*BRIEF).join(archives).where(versions.c.name.in_(named)).order_by(versions.c.name, versions.c.number)
    return list(db.execute(query))


def one(db: Connection, name: str, number: int) -> Any:
    query = select(*BRIEF, versions.c.description).join(archives)
    return db.execute(query.where(versions.c.name == name, versions.c.number == number)).one_or_none()


def aliases_of(db: Connection, named: Sequence[str]) -> dict[str, dict[str, int]]:
    """Per name, its aliases and the numbers they stand for."""
    found: dict[str, dict[str, int]] = {name: {} for name in named}
    rows = select(aliases.c.name, aliases.c.alias, aliases.c.number).where(aliases.c.name.in_(named)).order_by(aliases.c.alias)
    for name, alias, number in db.execute(rows):
        found[name][alias] = number
    return found


def set_alias(db: Connection, name: str, alias: str, number: int) -> None:
    into = postgresql.insert(aliases) if db.dialect.name == "postgresql" else sqlite.insert(aliases)
    row = {"number": number, "updated_at": now()}
    db.execute(into.values(name=name, alias=alias, **row).on_conflict_do_update(index_elements=["name", "alias"], set_=row))


def drop_alias(db: Connection, name: str, alias: str) -> bool:
    return bool(db.execute(delete(aliases).where(aliases.c.name == name, aliases.c.alias == alias)).rowcount)


def retire(db: Connection, name: str, number: int) -> bool:
    """Whether there is such a version; retiring it twice keeps the first time."""
    where = (versions.c.name == name, versions.c.number == number)
    db.execute(update(versions).where(*where, versions.c.retired_at.is_(None)).values(retired_at=now()))
    return archive_of(db, name, number) is not None
