"""The database: one way to read and one to write, on SQLite and on PostgreSQL. Plain, synchronous, for all but the steps of sessions."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.pool import StaticPool

from service.config import Settings
from service.errors import DatabaseAway
from service.store.lock import FileLock
from service.store.writer import Writer

T = TypeVar("T")
PATIENCE = 2.0  # seconds to wait for a connection, or for the writer


class Database(Protocol):
    """Work is a function of a connection. `write` commits what it did, all or nothing, before it returns."""

    def read(self, work: Callable[[Connection], T]) -> T: ...
    def write(self, work: Callable[[Connection], T]) -> T: ...
    def close(self) -> None: ...


def open_database(settings: Settings, lock: FileLock | None = None) -> "SqliteDatabase | PostgresDatabase":
    """The database of these settings; `lock` is that of an SQLite file where the caller holds it already."""
    file = settings.sqlite_file
    if file:
        return SqliteDatabase(file, lock, settings.max_queue)
    return PostgresDatabase(settings.database, max(2, settings.pool // 2))


class PostgresDatabase:
    """SQLAlchemy over psycopg, a pool of connections."""

    def __init__(self, url: str, size: int) -> None:
        self.url = url
        self.engine = create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            hide_parameters=True,  # errors are logged, values are not
            pool_size=size,
            max_overflow=0,
            pool_timeout=PATIENCE,
            pool_pre_ping=True,  # a connection that died with its server is replaced, not handed out
            connect_args={"connect_timeout": int(PATIENCE)},
        )

    def read(self, work: Callable[[Connection], T]) -> T:
        return _run(self.engine, work)

    write = read

    def close(self) -> None:
        self.engine.dispose()


class SqliteDatabase:
    """One process per file: a lock held for life, one writing connection in its own thread, the rest read only."""

    def __init__(self, file: Path, lock: FileLock | None = None, max_queue: int = 512) -> None:
        self.file = file
        self._own_lock = None if lock else lock_of(file)
        try:
            self.writer = Writer(self._connect, max_queue)
        except BaseException:
            self._release()
            raise
        self._writing: Connection | None = None
        self._writing_engine = create_engine(
            "sqlite://", hide_parameters=True, creator=lambda: self.writer.connection, poolclass=StaticPool
        )
        self.engine = create_engine(f"sqlite:///{file}", pool_timeout=PATIENCE, hide_parameters=True)
        event.listen(self.engine, "connect", lambda connection, _: _pragmas(connection, "query_only = ON"))

    def read(self, work: Callable[[Connection], T]) -> T:
        return _run(self.engine, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.writer.run(lambda _: self._in_sqlalchemy(work), PATIENCE)

    def reader(self) -> sqlite3.Connection:
        """A connection that reads only, for the ledger."""
        connection = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        _pragmas(connection, "query_only = ON")
        return connection

    def close(self) -> None:
        self.writer.close()
        self._writing_engine.dispose()
        self.engine.dispose()
        self._release()

    def _release(self) -> None:
        if self._own_lock is not None:
            self._own_lock.release()

    def _connect(self) -> "WriterOwned":
        connection = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False, factory=WriterOwned)
        _pragmas(connection, "journal_mode = WAL", "synchronous = FULL")
        return connection

    def _in_sqlalchemy(self, work: Callable[[Connection], T]) -> T:
        with _Translated(), self._writing_engine.connect() as connection:
            result = work(connection)
            connection.commit()
            return result


def lock_of(file: Path) -> FileLock:
    """The lock of an SQLite file, held; its folder is made if need be."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(file.with_name(file.name + ".lock"), f"the database {file}")


class WriterOwned(sqlite3.Connection):
    """A connection on which only the writer, with plain SQL, ends transactions: several pieces of work share one."""

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass


def _pragmas(connection: Any, *pragmas: str) -> None:
    for pragma in ("foreign_keys = ON", "busy_timeout = 2000", *pragmas):
        connection.execute(f"PRAGMA {pragma}").close()


def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
    with _Translated(), engine.begin() as connection:
        return work(connection)


class _Translated:
    """Turns a database that is away, full or failing into DatabaseAway; a broken rule stays the caller's IntegrityError."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (exc.OperationalError, exc.InternalError, exc.InterfaceError, exc.TimeoutError)):
            raise DatabaseAway() from error
