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
from typing import Any, TypeVar

from service.errors import Busy, DatabaseAway

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
TOGETHER = 64  # pieces of work that share a commit at most
NOT_WRITTEN = "The database cannot be written now. Nothing of this request was recorded: send it again."


class Writer:
    """Runs work on its connection, one piece after the other; `run` and `arun` return once it is committed."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], most: int = 512) -> None:
        self.most = most  # pieces of work of coroutines that may wait
        self.connection = connect()
        self._queue: queue.SimpleQueue[tuple[Work, Future[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="frugal-writer", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[sqlite3.Connection], T], patience: float) -> T:
        """Do the work and wait for its commit; Busy if its turn does not come within `patience` seconds."""
        done = self._submit(work)
        try:
            return done.result(patience)
        except TimeoutError:
            if done.cancel():
                raise _too_busy() from None
            return done.result()  # its turn has come: the outcome must be known

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

    def _submit(self, work: Callable[[sqlite3.Connection], T]) -> "Future[T]":
        if self._closed:
            raise DatabaseAway("The service is stopping.")
        done: Future[T] = Future()
        self._queue.put((work, done))
        return done

    def _serve(self) -> None:
        while batch := self._next():
            self._commit_together(batch)

    def _next(self) -> list[tuple[Work, "Future[Any]"]]:
        """What is queued, at least one piece; empty when the writer is closed and all is done."""
        batch: list[tuple[Work, Future[Any]]] = []
        item = self._queue.get()
        while item is not None:
            work, done = item
            if done.set_running_or_notify_cancel():
                batch.append((work, done))
            if len(batch) >= TOGETHER:
                return batch
            try:
                item = self._queue.get(block=not batch)
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)
        return batch

    def _commit_together(self, batch: list[tuple[Work, "Future[Any]"]]) -> None:
        """All in one transaction; where that fails, each in one of its own, so that whoever fails, fails alone. A transaction that cannot
        even begin fails them all: each would wait for the file as long again."""
        begun = False
        try:
            self._begin()
            begun = True
            results = self._transact([work for work, _ in batch])
        except Exception as error:
            if len(batch) == 1 or not begun:
                for _, done in batch:
                    done.set_exception(error)
                return
            for one in batch:
                self._commit_together([one])
            return
        for (_, done), result in zip(batch, results, strict=True):
            done.set_result(result)

    def _begin(self) -> None:
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise DatabaseAway(NOT_WRITTEN) from error

    def _transact(self, works: list[Work]) -> list[Any]:
        try:
            results = [work(self.connection) for work in works]
            self._commit()
            return results
        except BaseException as error:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise DatabaseAway(NOT_WRITTEN) from error
            raise

    def _commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise DatabaseAway(NOT_WRITTEN) from error


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
