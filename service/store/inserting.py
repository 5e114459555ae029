"""Inserts that may come second: whoever is first wins, and the other is told so instead of failing."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_new(db: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Whether the row is new; one whose key or unique name is taken is left out, after waiting for a twin in flight."""
    into = postgresql.insert(table) if db.dialect.name == "postgresql" else sqlite.insert(table)
    added = db.execute(into.values(**row).on_conflict_do_nothing().returning(*table.primary_key))
    return added.first() is not None
