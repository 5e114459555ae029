"""The one writer of an SQLite file: a thread with its own connection and a queue that is served in order of arrival.

Sixteen connections racing for BEGIN IMMEDIATE starve some clients for seconds; one writer does not. What has queued up while the disk was
syncing shares the next transaction, and all are told after the one commit; if that fails, each gets a transaction of its own:

    queue  | a | b | c |  ->  BEGIN  a  b  c  COMMIT  ->  a, b, c acknowledged

So work is a function of the connection that may run twice.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from frugal.service.errors import Busy, DatabaseAway

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
TOGETHER = 64  # pieces of work that share a commit at most
NOT_WRITTEN = "The database cannot be written now. Nothing of this request was recorded: send it again."


class Item(NamedTuple):
    """A piece of work and whoever waits for it; `between` is done between two transactions."""

    work: Work
    done: "Future[Any]"
    between: bool = False


class Writer:
    """Runs work on its connection, one piece after the other; `run` and `arun` return once it is committed. `check` says by DatabaseAway
    that commits come to nothing, and is asked after each, before it is acknowledged; `tidy` is called after that."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        check: Callable[[], None] = lambda: None,
        most: int = 512,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self.connection = connection
        self.most = most  # pieces of work of coroutines that may wait
        self._check, self._tidy = check, tidy
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="frugal-writer", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[sqlite3.Connection], T], patience: float) -> T:
        """Do the work and wait for its commit; Busy if its turn does not come within `patience` seconds."""
        return self._waited_for(self._submit(work), patience)

    def run_between(self, work: Callable[[], T], patience: float) -> T:
        """Do work that needs the file to itself for a moment, outside of the writer's own transactions."""
        return self._waited_for(self._submit(lambda _: work(), between=True), patience)

    async def arun(self, work: Callable[[sqlite3.Connection], T], patience: float) -> T:
        """The same for a coroutine; Busy at once where too much waits already. (Threads are few, and wait.)"""
        if self._queue.qsize() >= self.most:
            raise _too_busy()
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[T] = loop.create_future()
        done = self._submit(work)
        done.add_done_callback(lambda _: loop.call_soon_threadsafe(_tell, heard, done))
        timer = loop.call_later(patience, done.cancel)
        try:
            return await heard
        finally:
            timer.cancel()

    def close(self) -> None:
        """Finish what is queued, then let go of the file."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self.connection.close()

    def _waited_for(self, done: "Future[T]", patience: float) -> T:
        try:
            return done.result(patience)
        except TimeoutError:
            if done.cancel():
                raise _too_busy() from None
            return done.result()  # its turn has come: the outcome must be known

    def _submit(self, work: Callable[[sqlite3.Connection], T], between: bool = False) -> "Future[T]":
        if self._closed:
            raise DatabaseAway("The service is stopping.")
        done: Future[T] = Future()
        self._queue.put(Item(work, done, between))
        return done

    def _serve(self) -> None:
        while batch := self._next():
            last = batch.pop() if batch[-1].between else None
            if batch:
                self._commit_together(batch)
            if last is not None:
                self._do(last)

    def _do(self, item: Item) -> None:
        try:
            item.done.set_result(item.work(self.connection))
        except Exception as error:
            item.done.set_exception(error)

    def _next(self) -> list[Item]:
        """What is queued, at least one piece, of which the last alone may be between transactions; empty when the writer is closed and all
        is done."""
        batch: list[Item] = []
        item = self._queue.get()
        while item is not None:
            if item.done.set_running_or_notify_cancel():
                batch.append(item)
                if item.between or len(batch) >= TOGETHER:
                    return batch
            try:
                item = self._queue.get(block=not batch)
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)
        return batch

    def _commit_together(self, batch: list[Item]) -> None:
        """All in one transaction; where that fails, each in one of its own, so that whoever fails, fails alone. A transaction that cannot
        even begin fails them all: each would wait for the file as long again."""
        begun = False
        try:
            self._begin()
            begun = True
            results = self._transact([item.work for item in batch])
        except Exception as error:
            if len(batch) == 1 or not begun:
                for item in batch:
                    item.done.set_exception(error)
                return
            for one in batch:
                self._commit_together([one])
            return
        try:
            self._check()
        except DatabaseAway as error:
            for item in batch:
                item.done.set_exception(error)
            return
        for item, result in zip(batch, results, strict=True):
            item.done.set_result(result)
        self._tidy()

    def _begin(self) -> None:
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            raise DatabaseAway(NOT_WRITTEN) from error

    def _transact(self, works: list[Work]) -> list[Any]:
        try:
            results = [work(self.connection) for work in works]
            self._commit()
            return results
        except BaseException as error:
            if self.connection.in_transaction:
                with suppress(sqlite3.Error):  # SQLite does it by itself at the next chance
                    self.connection.execute("ROLLBACK")
            if is_away(error):
                raise DatabaseAway(NOT_WRITTEN) from error
            raise

    def _commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise DatabaseAway(NOT_WRITTEN) from error


def is_away(error: BaseException | None) -> bool:
    """Whether SQLite cannot use its file: full, damaged, locked, not to be written. A broken rule of the tables is not that."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.IntegrityError)


def _too_busy() -> Busy:
    return Busy("Too much is being written at once. Nothing was recorded: send the same request again.")


def _tell(heard: "asyncio.Future[Any]", done: "Future[Any]") -> None:
    if heard.done():
        return  # whoever waited has gone
    if done.cancelled():
        heard.set_exception(_too_busy())
    elif error := done.exception():
        heard.set_exception(error)
    else:
        heard.set_result(done.result())
