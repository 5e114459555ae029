"""Data sets: rows in, rows out. Their packed columns are archives."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, exists, select, update

from frugal.service.store import archives
from frugal.service.store.inserting import insert_new
from frugal.service.store.tables import archives as bytes_of
from frugal.service.store.tables import datasets, jobs

STORED = select(datasets, bytes_of.c.sha256).join(bytes_of)  # a data set with the check sum of its packed columns


def insert_dataset(db: Connection, row: Mapping[str, Any]) -> bool:
    """False where the name is taken."""
    archives.point_to(db, row["archive_id"])
    return insert_new(db, datasets, row)


def by_name(db: Connection, name: str) -> Any:
    return db.execute(STORED.where(datasets.c.name == name)).one_or_none()


def kept(db: Connection, name: str) -> Any:
    """The same, and nobody deletes it before this transaction ends."""
    return db.execute(STORED.where(datasets.c.name == name).with_for_update(of=datasets, read=True, key_share=True)).one_or_none()


def locked(db: Connection, name: str) -> Any:
    """The same, and nobody changes it or begins to need it before this transaction ends."""
    return db.execute(STORED.where(datasets.c.name == name).with_for_update(of=datasets)).one_or_none()


def in_use(db: Connection, id: UUID) -> bool:
    """Whether a job that waits or runs needs it."""
    return bool(db.execute(select(exists().where(jobs.c.dataset_id == id))).scalar())


def listed(db: Connection, after: str, limit: int) -> list[Any]:
    """By name."""
    return list(db.execute(STORED.where(datasets.c.name > after).order_by(datasets.c.name).limit(limit)))


def set_costs(db: Connection, id: UUID, costs: Mapping[str, Any]) -> None:
    db.execute(update(datasets).where(datasets.c.id == id).values(costs=dict(costs)))


def drop(db: Connection, row: Any) -> None:
    """Delete a data set and condemn its bytes."""
    db.execute(delete(datasets).where(datasets.c.id == row.id))
    archives.condemn(db, row.archive_id)


def any_dataset(db: Connection) -> bool:
    return db.execute(select(datasets.c.id).limit(1)).scalar() is not None
