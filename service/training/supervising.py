"""The loop that claims jobs and has them trained, one at a time: a thread of `serve` on SQLite, the process `frugal worker` on PostgreSQL.

The child does the work and beats; this loop holds the lease while it hears the beats, and publishes. The database may go away meanwhile:
the work goes on, and what was not written is written when it is back, if the job is still this worker's.
"""

import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from service.config import Settings
from service.errors import Problem
from service.store import archives, datasets
from service.store.db import Database
from service.training import frames, jobs
from service.training.jobs import Claim, LeaseLost
from service.training.process import Child, Ended

POLL = 0.5  # seconds between two looks for a job, and at the most between two at the lease
NEWS = 0.5  # seconds between two events of a job's progress
RETRY = 1.0  # seconds until a database that was away is tried again
HUNG = 60.0  # seconds without a beat, or without CPU time, after which a child is given up
WARMING = 600.0  # the same while it starts: a new machine compiles the kernels first
FOLDER = "frugal-job-"
log = logging.getLogger("frugal")


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
        if self._spare is None and self.database.read(datasets.any_dataset):
            self._spare = Child()

    def _take_spare(self) -> Child:
        child, self._spare = self._spare, None
        return child or Child()


class Training:
    """One claimed job and its child."""

    def __init__(self, supervisor: Supervisor, claim: Claim, child: Child) -> None:
        self.supervisor, self.claim, self.child = supervisor, claim, child
        self.database, self.lease, self.stop = supervisor.database, supervisor.lease, supervisor.stop
        self.progress: dict[str, Any] = {"phase": "reading", "fraction": 0.0, "trees": None, "mean_cost": None}
        self.about: dict[str, Any] = {}
        self.staging = archives.Staging(self.database)
        self.pieces: list[bytes] = []  # of the model, that are not staged yet
        self._told = self.progress
        self._told_at = self._renewed_at = 0.0
        self._cpu, self._lived_at = -1.0, time.monotonic()

    def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
            try:
                if self._prepare(Path(folder)):
                    self._attend()
            finally:
                self.child.end()
                with suppress(Problem):  # then the sweep drops it
                    self.staging.drop()

    def _prepare(self, folder: Path) -> bool:
        """Lay out what the child needs, and tell it where: a pipe that nobody reads yet holds no more than a few words."""
        try:
            self._insist(lambda: self._fetch(folder / "rows"))
            (folder / "order").write_text(json.dumps({"spec": self.claim.job.spec, "memory": self.supervisor.memory}))
        except (ValueError, OSError) as error:  # the table is damaged, or the disk is full
            self._again(f"its table could not be fetched ({type(error).__name__})")
            return False
        self.child.order(folder)
        return True

    def _fetch(self, file: Path) -> None:
        """The data set's rows into a file that only this user may read."""
        name = self.claim.spec.dataset

        def copy(db: Any) -> None:
            row = datasets.by_name(db, name)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
                for chunk in archives.fetch_chunks(db, row.archive_id):
                    target.write(chunk)

        self.database.read(copy)

    def _attend(self) -> None:
        """Hear the child until it is done, beating for it."""
        end = time.monotonic() + self.supervisor.seconds
        while True:
            heard = self.child.hear(POLL)
            if self.stop.is_set():
                jobs.release(self.database, self.claim)
                return
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
            if time.monotonic() - self._lived_at > (HUNG if self.child.ready else WARMING):
                self._again("the process that trained it hung")
                return
            self._beat()

    def _hear(self, kind: bytes, data: bytes) -> bool:
        """Whether that was the last word."""
        if kind != frames.PROGRESS:
            self._lived_at = time.monotonic()
        if kind == frames.PROGRESS:
            said = json.loads(data)
            cpu = said.pop("cpu")
            if cpu > self._cpu + 0.01:  # a beat alone shows that the process is there, not that it works
                self._cpu, self._lived_at = cpu, time.monotonic()
            self.progress = said
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
        return False

    def _beat(self) -> None:
        """Hold the lease, tell what is new, learn whether the job is still ours. A database that is away is tried at the next beat."""
        at = time.monotonic()
        changed = self.progress != self._told and at - self._told_at >= NEWS
        if not changed and at - self._renewed_at < min(POLL, self.lease / 4):
            return
        self._renewed_at = at
        with suppress(Problem):
            jobs.renew(self.database, self.claim, self.lease, self.progress, changed)
            if changed:
                self._told, self._told_at = self.progress, at

    def _stage(self) -> None:
        """Store what has come of the model."""
        if self.pieces:
            self._insist(lambda: self.staging.add(self.pieces))
        self.pieces = []
        self._lived_at = time.monotonic()

    def _publish(self) -> None:
        self._insist(self.staging.seal)
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
