"""Data sets: rows in, rows out. Their packed columns are archives."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from service.store import archives
from service.store.tables import archives as bytes_of
from service.store.tables import datasets

STORED = select(datasets, bytes_of.c.sha256).join(bytes_of)  # a data set with the check sum of its packed columns


def insert_dataset(db: Connection, row: Mapping[str, Any]) -> None:
    """IntegrityError where the name is taken."""
    archives.point_to(db, row["archive_id"])
    db.execute(insert(datasets).values(**row))


def by_name(db: Connection, name: str) -> Any:
    return db.execute(STORED.where(datasets.c.name == name)).one_or_none()


def listed(db: Connection, after: str, limit: int) -> list[Any]:
    """By name."""
    return list(db.execute(STORED.where(datasets.c.name > after).order_by(datasets.c.name).limit(limit)))


def set_costs(db: Connection, name: str, costs: Mapping[str, Any]) -> bool:
    return bool(db.execute(update(datasets).where(datasets.c.name == name).values(costs=dict(costs))).rowcount)


def drop(db: Connection, name: str) -> bool:
    """Delete a data set and condemn its bytes; IntegrityError while a job needs it."""
    row = by_name(db, name)
    if row is None:
        return False
    db.execute(delete(datasets).where(datasets.c.id == row.id))
    archives.condemn(db, row.archive_id)
    return True


def any_dataset(db: Connection) -> bool:
    return db.execute(select(datasets.c.id).limit(1)).scalar() is not None
