"""Holding a job: a thread of its own renews the lease, whatever else the worker does meanwhile, and tells how far the job is.

So a table that takes longer to fetch than a lease lasts, or a model that takes longer to store, is no lost attempt.
"""

import logging
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from frugal.service.errors import Problem
from frugal.service.store.db import Database
from frugal.service.training import jobs
from frugal.service.training.jobs import Claim, LeaseLost

BEAT = 0.5  # seconds between two renewals at the most: a worker learns that soon that its job was cancelled
NEWS = 0.5  # seconds between two events of a job's progress
log = logging.getLogger("frugal")


class Lease:
    """Renewed from entering to leaving the block, unless it is lost. A database that is away is tried again at the next beat."""

    def __init__(self, database: Database, claim: Claim, seconds: float) -> None:
        self.database, self.claim, self.seconds = database, claim, seconds
        self.progress: Mapping[str, Any] = {"phase": "reading", "fraction": 0.0, "trees": None, "mean_cost": None}
        self._told: Mapping[str, Any] = self.progress
        self._told_at = 0.0
        self._lost, self._left, self._news = threading.Event(), threading.Event(), threading.Event()
        self._beating = threading.Lock()
        self._thread = threading.Thread(target=self._beat_on, name="frugal-lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._left.set()
        self._news.set()
        self._thread.join()

    def tell(self, progress: Mapping[str, Any]) -> None:
        """How far the job is: stored with the next beat, which comes at once if the last was a while ago."""
        self.progress = progress
        self._news.set()

    def check(self) -> None:
        """LeaseLost where the job is no longer this worker's."""
        if self._lost.is_set():
            raise LeaseLost()

    def _beat_on(self) -> None:
        pause = min(BEAT, self.seconds / 4) / 2
        while not self._left.is_set():
            self._news.wait(pause)
            self._news.clear()
            try:
                self._beat()
            except LeaseLost:
                self._lost.set()
                return
            except Problem:
                pass
            except Exception:
                log.exception("a lease was not renewed")
            self._left.wait(pause)

    def tell_last(self) -> None:
        """What was told and not stored yet: a short job ends before its first beat."""
        self._beat(NEWS)

    def _beat(self, early: float = 0.0) -> None:
        with self._beating:
            progress, at = self.progress, time.monotonic()
            news = progress != self._told and at - self._told_at >= NEWS - early
            jobs.renew(self.database, self.claim, self.seconds, progress, news)
            if news:
                self._told, self._told_at = progress, at
