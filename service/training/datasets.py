"""Data sets: keep a table that was read, list, describe, price and delete. Plain and synchronous."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from frugal.service.errors import DatasetExists, DatasetInUse, DatasetNotFound
from frugal.service.store import archives, audit, dataset_rows
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database
from frugal.service.store.ids import new_id
from frugal.service.store.tables import iso, now
from frugal.service.tables import Column, Columns, notice, pack
from frugal.service.tables.remarks import Remark, told_anywhere
from frugal.service.training.pricing import Costs, checked_costs, unpriced_columns

COUNTED = 1000  # distinct numbers of a column, counted no further
PRICE = ("cost", "group", "cost_in_group", "delayed", "unit", "question")


def store(database: Database, actor: Actor, name: str, table: Columns, sent: int, costs: Costs | None) -> tuple[dict[str, Any], bool]:
    """Keep a table under a name; the same table under the same name again is left as it is, and told with True."""
    left_out = set(table.left_out)
    priced = checked_costs({feature: price for feature, price in (costs or {}).items() if feature not in left_out}, table.columns)
    remarks: dict[str, list[Any]] = {column: [] for column in ("", *table.columns)}  # "" is no column's: a cell that is nowhere
    for remark in notice(table):
        remarks[remark.column].append(remark.to_json())
    archive_id = archives.stage_chunks(database, pack(table))
    row = {
        "id": new_id(),
        "name": name,
        "archive_id": archive_id,
        "owner": actor.owner,
        "source_bytes": sent,
        "rows": len(table),
        "columns": [describe_column(column) | {"remarks": remarks[column.name]} for column in table.by_name.values()],
        "costs": priced,
        "created_at": now(),
    }

    def insert(db: Connection) -> tuple[Any, bool]:
        """The data set that has the name now, and whether it is this one."""
        while not dataset_rows.insert_dataset(db, row):
            if twin := dataset_rows.by_name(db, name):  # else it was deleted meanwhile
                return twin, False
        audit.record(db, actor, "dataset.store", name, {"rows": len(table), "columns": len(table.columns)})
        return dataset_rows.by_name(db, name), True

    found, new = database.write(insert)
    if new:
        return shown(found), False
    sha256 = database.write(lambda db: _taken_back(db, archive_id))
    archives.drop_condemned(database)
    if found.sha256 != sha256:
        raise DatasetExists("There is another data set of this name: choose another, or delete that one first.")
    if costs is not None and found.costs != priced:
        raise DatasetExists("This table is stored under this name with other costs: change those with PUT /v1/admin/datasets/NAME/costs.")
    return shown(found), True


def _taken_back(db: Connection, archive_id: UUID) -> str:
    """Condemn what was staged; its check sum tells whether it was the same table."""
    sent = archives.sha256_of(db, archive_id)
    archives.condemn(db, archive_id)
    return sent


def describe(database: Database, name: str) -> dict[str, Any]:
    """All that is told of a data set: per column its kind, range or categories, how many are missing, and its cost."""
    row = database.read(lambda db: dataset_rows.by_name(db, name))
    if row is None:
        raise DatasetNotFound()
    return shown(row)


def listed(database: Database, after: str, limit: int) -> list[dict[str, Any]]:
    return [brief(row) for row in database.read(lambda db: dataset_rows.listed(db, after, limit))]


def set_costs(database: Database, actor: Actor, name: str, costs: Costs) -> dict[str, Any]:
    """Other prices for the jobs that come; those that are submitted keep theirs."""

    def change(db: Connection) -> dict[str, Any]:
        row = dataset_rows.locked(db, name)
        if row is None:
            raise DatasetNotFound()
        dataset_rows.set_costs(db, row.id, checked_costs(costs, [column["name"] for column in row.columns]))
        audit.record(db, actor, "dataset.price", name, {"features": len(costs)})
        return shown(dataset_rows.by_name(db, name))

    return database.write(change)


def delete(database: Database, actor: Actor, name: str) -> None:
    def drop(db: Connection) -> None:
        row = dataset_rows.locked(db, name)
        if row is None:
            raise DatasetNotFound()
        if dataset_rows.in_use(db, row.id):
            raise DatasetInUse("A job that is queued or running needs this data set: wait for it, or cancel it first.")
        dataset_rows.drop(db, row)
        audit.record(db, actor, "dataset.delete", name, {})

    database.write(drop)
    archives.drop_condemned(database)


def describe_column(column: Column) -> dict[str, Any]:
    """What is told of a column: its `distinct` values, of numbers up to a thousand (None: more), and whether all are `whole`."""
    about = column.describe()
    if column.kind == "numeric":
        numbers = column.values[~np.isnan(column.values)] if column.missing else column.values
        whole = numbers.dtype.kind != "f" or bool((numbers == np.rint(numbers)).all())
        return about | {"distinct": count_distinct(numbers), "whole": whole}
    return about | {"whole": None}


def count_distinct(numbers: NDArray[Any]) -> int | None:
    """How many different numbers, None for more than `COUNTED`.

    Examples
    --------
    >>> count_distinct(np.array([3, 1, 3], np.uint8))
    2
    >>> count_distinct(np.arange(2000.0))
    """
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize <= 2 and len(numbers):
        seen = np.zeros(1 << 16, bool)
        seen[numbers.astype(np.intp, copy=False)] = True  # a negative one counts from the end
        found = int(seen.sum())
    else:
        found = len(np.unique(numbers[: 8 * COUNTED]))  # most columns of many values show it early
        found = found if found > COUNTED else len(np.unique(numbers))
    return found if found <= COUNTED else None


def brief(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "rows": row.rows,
        "columns": len(row.columns),
        "bytes": row.source_bytes,
        "owner": row.owner,
        "created_at": iso(row.created_at),
    }


def shown(row: Any) -> dict[str, Any]:
    columns = [column | _price(row.costs.get(column["name"], {})) for column in row.columns]
    remarks = [Remark.from_json(column["name"], stored) for column in columns for stored in column.pop("remarks", ())]
    return brief(row) | {
        "columns": columns,
        "warnings": [*told_anywhere(remarks), *unpriced_columns(row.costs, [column["name"] for column in columns])],
    }


def _price(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"cost": 1.0, "delayed": False} | {name: given.get(name) for name in PRICE if name not in ("cost", "delayed")} | dict(given)
