"""The database: one way to read and one to write, on SQLite and on PostgreSQL. Plain, synchronous, for all but the steps of sessions."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, func, insert
from sqlalchemy.pool import QueuePool, StaticPool

from frugal.service.address import Address
from frugal.service.config import Settings
from frugal.service.errors import DatabaseAway
from frugal.service.store.files import Files, has_space, make_private
from frugal.service.store.ids import new_id
from frugal.service.store.lock import FileLock
from frugal.service.store.tables import archives
from frugal.service.store.writer import Writer, is_away

T = TypeVar("T")
PATIENCE = 2.0  # seconds to wait for a connection, or for the writer
CHECKPOINT = 256  # commits between two checkpoints of an SQLite file, at the most
JOURNAL = 4 * 1024 * 1024  # bytes that its journal may grow before one
AWAY = (exc.OperationalError, exc.InternalError, exc.InterfaceError, exc.TimeoutError)
NOBODY = "0" * 32
TRIAL_SESSION = (
    """INSERT INTO sessions (id, owner, name, number, status, revision, seed, spent, created_at, updated_at, expires_at)
    VALUES (?, '', '', 1, 'open', 1, 0, 0, '', '', '')""",
    (NOBODY,),
)
TRIAL_ANSWER = (
    """INSERT INTO answers (session_id, feature, position, status, value, cost, bought, source, at)
    VALUES (?, '', 0, 'value', ?, 0, false, 'known', '')""",
    (NOBODY, "x" * 65_536),
)


class Database(Protocol):
    """Work is a function of a connection. `write` commits what it did, all or nothing, before it returns. `try_write` writes something and
    takes it back: DatabaseAway where the disk is full or the file is damaged."""

    def read(self, work: Callable[[Connection], T]) -> T: ...
    def write(self, work: Callable[[Connection], T]) -> T: ...
    def try_write(self) -> None: ...
    def close(self) -> None: ...


def open_database(settings: Settings, lock: FileLock | None = None) -> "SqliteDatabase | PostgresDatabase":
    """The database of these settings; `lock` is that of an SQLite file where the caller holds it already."""
    file = settings.sqlite_file
    if file:
        return SqliteDatabase(file, lock, settings.max_queue)
    return PostgresDatabase(settings.address, max(2, settings.pool // 2))


class PostgresDatabase:
    """SQLAlchemy over psycopg, a pool of connections."""

    def __init__(self, address: Address, size: int) -> None:
        hosts, options = ",".join(address.hosts), dict(address.options)
        self.engine = create_engine(
            URL.create("postgresql+psycopg", address.user, None, hosts, address.port, address.name, options),
            hide_parameters=True,  # errors are logged, values are not
            pool_size=size,
            max_overflow=0,
            pool_timeout=PATIENCE,
            pool_pre_ping=True,  # a connection that died with its server is replaced, not handed out
            connect_args={"connect_timeout": int(PATIENCE)},
        )
        event.listen(self.engine, "do_connect", lambda dialect, record, given, named: _add_password(address, named))

    def read(self, work: Callable[[Connection], T]) -> T:
        return _run(self.engine, work)

    write = read

    def try_write(self) -> None:
        with _Translated(), self.engine.connect() as connection:  # rolled back when it is given back
            connection.execute(insert(archives).values(id=new_id(), sha256="", size=0, created_at=func.now()))

    def close(self) -> None:
        _close(self.engine)


class SqliteDatabase:
    """One process per file: a lock held for life, one writing connection in its own thread, the rest read only."""

    def __init__(self, file: Path, lock: FileLock | None = None, max_queue: int = 512) -> None:
        self.file = file.absolute()
        self._lock, self._own_lock = lock or lock_of(file), lock is None
        try:
            make_private(self.file.resolve())
            connection = self._connect_writer()
            self.files = Files(self.file, self._lock)
        except BaseException:
            self._release()
            raise
        self._commits, self._journal = 0, self.files.journal_size()
        self.writer = Writer(connection, self.files.check, max_queue, self._checkpoint_now_and_then)
        self._writing_engine = create_engine(
            "sqlite://", hide_parameters=True, creator=lambda: self.writer.connection, poolclass=StaticPool
        )
        self.engine = create_engine("sqlite://", hide_parameters=True, creator=self.reader, poolclass=QueuePool, pool_timeout=PATIENCE)

    def read(self, work: Callable[[Connection], T]) -> T:
        return _run(self.engine, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.writer.run(lambda _: self._in_sqlalchemy(work), PATIENCE)

    def reader(self) -> sqlite3.Connection:
        """A connection that reads only."""
        return self._connect(sqlite3.Connection, "query_only = ON")

    def try_write(self) -> None:
        """Between two transactions of the writer, so that neither waits for the other."""
        self.files.check()
        try:
            has_space(self.file.resolve().parent)
            self.writer.run_between(self._trial, PATIENCE)
        except (sqlite3.DatabaseError, OSError) as error:
            raise DatabaseAway() from error

    def close(self) -> None:
        self.writer.close()
        self._writing_engine.dispose()
        _close(self.engine)
        self._release()

    def _release(self) -> None:
        if self._own_lock:
            self._lock.release()

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect(WriterOwned, "journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0")
        connection.execute("SELECT count(*) FROM sqlite_schema").close()  # now the journal is there too
        return connection

    def _checkpoint_now_and_then(self) -> None:
        """Move what was committed from the journal into the database. SQLite would do that by itself; so it is known who wrote there."""
        self._commits += 1
        with suppress(sqlite3.Error, OSError):  # what is wrong is told by the next commit
            size = self.files.journal_size()
            if self._commits >= CHECKPOINT or size >= self._journal + JOURNAL:
                self._commits, self._journal = 0, size
                try:
                    self.writer.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").close()
                finally:
                    self.files.renew()

    def _connect(self, kind: type[sqlite3.Connection], *pragmas: str) -> sqlite3.Connection:
        """A connection to the file that is there: SQLite would make an empty one in place of one that is gone."""
        where = f"file:{quote(str(self.file))}?mode=rw"
        connection = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False, factory=kind)
        try:
            for pragma in ("foreign_keys = ON", "busy_timeout = 2000", *pragmas):
                connection.execute(f"PRAGMA {pragma}").close()
        except BaseException:
            connection.close()
            raise
        return connection

    def _trial(self) -> None:
        """Write a session, larger than what the connection holds in memory, so that it goes to the disk before it is taken back. The
        connection is new: it reads the file as it is, not as it was."""
        with closing(self._connect(sqlite3.Connection, "foreign_keys = OFF", "cache_size = 1")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(*TRIAL_SESSION)
            connection.execute(*TRIAL_ANSWER)
            connection.execute("ROLLBACK")

    def _in_sqlalchemy(self, work: Callable[[Connection], T]) -> T:
        with _Translated(), self._writing_engine.connect() as connection:
            result = work(connection)
            connection.commit()
            return result


def lock_of(file: Path) -> FileLock:
    """The lock of an SQLite file, held; its folder is made if need be. One file has one lock, whatever leads to it."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(file.with_name(file.name + ".lock"), f"the database {file}")


class WriterOwned(sqlite3.Connection):
    """A connection on which only the writer, with plain SQL, ends transactions: several pieces of work share one."""

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass


def _add_password(address: Address, named: dict[str, Any]) -> None:
    try:
        password = address.secret()
    except OSError as error:
        raise DatabaseAway() from error
    if password is not None:
        named["password"] = password


def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
    with _Translated(), engine.begin() as connection:
        return work(connection)


def _close(engine: Engine) -> None:
    """Close its connections: those that are free now, those with which a thread still works when it gives them back."""
    event.listen(engine, "checkin", lambda connection, entry: entry.close())
    engine.dispose()


class _Translated:
    """Turns a database that is away, full, damaged or failing into DatabaseAway. A rule of its tables that was broken stays what it is: the
    same would happen again, so nobody is told to send it again."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, AWAY) or (isinstance(error, exc.DBAPIError) and is_away(error.orig)) or is_away(error):
            raise DatabaseAway() from error
