"""The loop that claims jobs and has them trained, one at a time: a thread of `serve` on SQLite, the process `frugal worker` on PostgreSQL.

The child does the work; this loop watches it, holds the lease and publishes. The database may go away meanwhile: the work goes on, and
what was not written is written when it is back, if the job is still this worker's.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from frugal.service.config import Settings
from frugal.service.errors import Problem
from frugal.service.store import archives, dataset_rows
from frugal.service.store.db import Database
from frugal.service.training import frames, jobs
from frugal.service.training.jobs import Claim, LeaseLost
from frugal.service.training.leasing import Lease
from frugal.service.training.priority import Turns
from frugal.service.training.process import Child, Ended
from frugal.service.training.vitals import Vitals

POLL = 0.5  # seconds between two looks for a job, and at the most between two at the child
RETRY = 1.0  # seconds until a database that was away is tried again
HUNG = 60.0  # seconds without progress, processor time or waiting for a processor, after which a child is given up
log = logging.getLogger("frugal")


class Stopped(Exception):  # noqa: N818 - it is news, not an error
    """This worker was told to stop, and gives its job back."""


class Supervisor:
    """Trains what is queued until it is told to stop."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.lease = settings.lease
        self.memory = settings.training_memory
        self.seconds = settings.training_seconds
        self.stop = threading.Event()
        self._spare: Child | None = None

    def run(self) -> None:
        """Until `stop` is set. Nothing that goes wrong with one job, or with the database, ends the loop."""
        try:
            while not self.stop.is_set():
                if not self._guarded(self._next):
                    self.stop.wait(POLL)
        finally:
            if self._spare is not None:
                self._spare.end()

    def _guarded(self, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except LeaseLost:
            log.warning("a job was taken over or cancelled: this worker leaves it")
        except Problem as problem:
            log.warning("training waits: %s", problem.slug)
            self.stop.wait(RETRY)
        except Exception:
            log.exception("training failed unexpectedly")
            self.stop.wait(RETRY)
        return False

    def _next(self) -> bool:
        """Train one job; False where there is none."""
        self._keep_spare()
        claim = jobs.claim(self.database, self.lease)
        if claim is None:
            return False
        log.info("training job %s, attempt %d", claim.job.id, claim.job.attempts)
        Training(self, claim, self._take_spare()).run()
        return True

    def _keep_spare(self) -> None:
        """A warm child waits as soon as there is anything to train on: who never trains has none."""
        if self._spare is not None and not self._spare.alive:
            log.warning("a process that was to train ended before it had anything to do")
            self._spare.end()
            self._spare = None
            self.stop.wait(RETRY)
        if self._spare is None and self.database.read(dataset_rows.any_dataset):
            self._spare = Child()

    def _take_spare(self) -> Child:
        child, self._spare = self._spare, None
        return child or Child()


class Training:
    """One claimed job and its child."""

    def __init__(self, supervisor: Supervisor, claim: Claim, child: Child) -> None:
        self.supervisor, self.claim, self.child = supervisor, claim, child
        self.database, self.stop = supervisor.database, supervisor.stop
        self.lease = Lease(self.database, claim, supervisor.lease)
        self.staging = jobs.staging(self.database, claim)
        self.vitals = Vitals(child.pid)
        self.about: dict[str, Any] = {}
        self.pieces: list[bytes] = []  # of the model, that are not staged yet

    def run(self) -> None:
        try:
            with self.lease:
                if self._prepare():
                    self._attend()
        except Stopped:
            jobs.release(self.database, self.claim)
        finally:
            self.child.end()

    def _prepare(self) -> bool:
        """Lay out what the child needs, and let it begin."""
        try:
            self._insist(lambda: self.database.read(lambda db: self.child.bring(self._rows(db))))
            self.child.order({"spec": self.claim.job.spec, "memory": self.supervisor.memory})
        except (ValueError, OSError) as error:  # the table is damaged, or the disk is full
            self._again(f"its table could not be fetched ({type(error).__name__})")
            return False
        return True

    def _rows(self, db: Any) -> Iterator[bytes]:
        """The data set's bytes, for as long as they are wanted."""
        for chunk in archives.fetch_chunks(db, dataset_rows.by_name(db, self.claim.spec.dataset).archive_id):
            self._check()
            yield chunk

    def _check(self) -> None:
        """Whether to go on: not where this worker is to stop, nor where the job is another's or cancelled."""
        if self.stop.is_set():
            raise Stopped
        self.lease.check()

    def _attend(self) -> None:
        """Hear the child until it is done."""
        end, turns = time.monotonic() + self.supervisor.seconds, Turns(self.vitals)
        while True:
            heard = self.child.hear(POLL)
            self._check()
            if isinstance(heard, Ended):
                self._again(str(heard))
                return
            if heard is not None:
                waited = time.monotonic()
                if self._hear(*heard):
                    return
                end += time.monotonic() - waited  # for the database: that is not the training's time
            if time.monotonic() > end:
                self._fail(f"The training took longer than the {self.supervisor.seconds:,} seconds that it may take.")
                return
            self.vitals.look()
            turns.give()
            if self.vitals.still > HUNG:
                self._again("the process that trained it hung")
                return

    def _hear(self, kind: bytes, data: bytes) -> bool:
        """Whether that was the last word."""
        if kind == frames.PROGRESS:
            said = json.loads(data)
            if said == self.lease.progress:
                return False  # to say the same again shows that the process is there, not that it works
            self.lease.tell(said)
        elif kind == frames.ABOUT:
            self.about = json.loads(data)
        elif kind == frames.ARCHIVE:
            self.pieces.append(data)
            if len(self.pieces) == archives.TOGETHER:
                self._stage()
        elif kind == frames.DONE:
            self._stage()
            self._publish()
            return True
        elif kind == frames.FAILED:
            self._fail(json.loads(data)["detail"])
            return True
        self.vitals.progressed()
        return False

    def _stage(self) -> None:
        """Store what has come of the model."""
        if self.pieces:
            self._insist(lambda: self.staging.add(self.pieces))
        self.pieces = []

    def _publish(self) -> None:
        self._insist(self.staging.seal)
        self._insist(self.lease.tell_last)
        about, warnings = self.about["about"], self.about["warnings"]
        version = self._insist(lambda: jobs.finish(self.database, self.claim, self.staging.id, about, warnings))
        log.info("job %s published %s", self.claim.job.id, version)

    def _again(self, why: str) -> None:
        log.warning("job %s: %s", self.claim.job.id, why)
        self._insist(lambda: jobs.again(self.database, self.claim, why))

    def _fail(self, detail: str) -> None:
        log.warning("job %s failed", self.claim.job.id)
        self._insist(lambda: jobs.fail(self.database, self.claim, detail))

    def _insist(self, work: Callable[[], Any]) -> Any:
        """Do it, however long the database is away; only being told to stop ends the waiting, and LeaseLost."""
        while True:
            try:
                return work()
            except Problem:
                if self.stop.wait(RETRY):
                    raise
