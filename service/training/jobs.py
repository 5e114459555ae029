"""What a job may become, one function per transition. Whoever trains it writes with the token of its lease, or not at all.

    queued --claim--> running --finish--> done (version published, alias moved: one transaction)
       ^                 |------fail-----> failed
       |----release------|  (its worker stops)
       |----again--------|  (its child died, or its worker's lease ran out), three attempts at most, then failed
    queued or running --cancel--> cancelled

A cancelled job has no token any more: its worker learns that at its next beat, and ends the child. The model's bytes are staged under the
token, and only while it is the job's: whoever takes the token away condemns them, so an attempt that came to nothing leaves none.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from frugal.service.errors import Busy, DatasetNotFound, JobNotFound, JobOver, KeyReused
from frugal.service.registry import versions as registry
from frugal.service.store import archives, audit, dataset_rows, job_rows
from frugal.service.store.audit import Actor
from frugal.service.store.clock import clock
from frugal.service.store.db import Database
from frugal.service.store.ids import new_id
from frugal.service.store.tables import now
from frugal.service.training.judging import judged
from frugal.service.training.spec import Spec

ATTEMPTS = 3
SUBMITTING = 3  # looks at what an Idempotency-Key began, and tries to begin it
Keyed = tuple[str, str]  # an Idempotency-Key, and the SHA-256 of the body it came with
OVER: dict[str, Any] = {"lease_token": None, "lease_until": None, "dataset_id": None}
WAITING: dict[str, Any] = {"status": "queued", "lease_token": None, "lease_until": None}


@dataclass(frozen=True)
class Claim:
    """A job to train: its row, and the token that its worker writes with."""

    job: Any
    token: UUID

    @property
    def spec(self) -> Spec:
        return Spec.from_json(self.job.spec)


class LeaseLost(Exception):  # noqa: N818 - it is news, not an error
    """The job is another's now, or cancelled: nothing may be written."""


def submit(database: Database, actor: Actor, asked: Spec, keyed: Keyed | None = None) -> tuple[Any, bool]:
    """Queue a job that is judged against its data set; or the job that this key submitted before, and True."""
    for _ in range(SUBMITTING):
        if keyed is not None and (earlier := database.read(lambda db: _submitted(db, actor, keyed))):
            return earlier, True
        with suppress(_KeyTaken):
            return database.write(lambda db: _insert(db, actor, asked, keyed)), False
    raise Busy("This Idempotency-Key is being used by others at this moment: send the same request again.")


class _KeyTaken(Exception):  # noqa: N818 - it is news, not an error
    """A twin submitted its job first: nothing of this one stays."""


def _submitted(db: Connection, actor: Actor, keyed: Keyed) -> Any:
    found = job_rows.keyed(db, actor.owner, keyed[0])
    if found is None:
        return None
    if found.body_sha256 != keyed[1]:
        raise KeyReused("This Idempotency-Key was used with another body within the last 24 hours: take a new key for a new request.")
    return job_rows.one(db, found.job_id)


def _insert(db: Connection, actor: Actor, asked: Spec, keyed: Keyed | None) -> Any:
    dataset = dataset_rows.kept(db, asked.dataset) if registry.is_name(asked.dataset) else None
    if dataset is None:
        raise DatasetNotFound()
    spec, id, at = judged(asked, dataset.columns, dataset.rows, dataset.costs), new_id(), now()
    job_rows.insert_job(
        db,
        {
            "id": id,
            "owner": actor.owner,
            "status": "queued",
            "dataset_id": dataset.id,
            "spec": spec.to_json(),
            "attempts": 0,
            "progress": {},
            "events": 0,
            "created_at": at,
            "updated_at": at,
        },
    )
    if keyed is not None and not job_rows.insert_key(db, actor.owner, *keyed, id):
        raise _KeyTaken()
    job_rows.add_event(db, id, "queued", {})
    audit.record(db, actor, "job.submit", str(id), {"dataset": spec.dataset, "learner": spec.learner})
    return job_rows.one(db, id)


def read(database: Database, id: UUID) -> Any:
    row = database.read(lambda db: job_rows.one(db, id))
    if row is None:
        raise JobNotFound()
    return row


def claim(database: Database, lease: float) -> Claim | None:
    """The oldest job that waits, or whose worker has not been heard of for the time of its lease; None where there is none."""

    def take(db: Connection) -> Claim | bool:
        at = clock(db)
        row = job_rows.next_claimable(db, at)
        if row is None:
            return False
        _condemn(db, row.lease_token)
        if row.attempts >= ATTEMPTS:
            _failed(db, row.id, _gave_up("its worker was lost each time"))
            return True
        token = new_id()
        started = {"status": "running", "attempts": row.attempts + 1, "started_at": row.started_at or at, "progress": {}}
        job_rows.change(db, row.id, started | {"lease_token": token, "lease_until": at + timedelta(seconds=lease)})
        job_rows.add_event(db, row.id, "running", {"attempt": row.attempts + 1})
        return Claim(job_rows.one(db, row.id), token)

    while found := database.write(take):
        archives.drop_condemned(database)
        if isinstance(found, Claim):
            return found
    return None


def renew(database: Database, claim: Claim, lease: float, progress: Mapping[str, Any], news: bool) -> None:
    """Hold the job for longer, and tell how far it is; `news` makes an event of it. LeaseLost where it is no longer this worker's."""

    def hold(db: Connection) -> None:
        until = clock(db) + timedelta(seconds=lease)
        _mine(job_rows.change(db, claim.job.id, {"lease_until": until, "progress": dict(progress)}, claim.token))
        if news:
            job_rows.add_event(db, claim.job.id, "progress", progress)

    database.write(hold)


def staging(database: Database, claim: Claim) -> archives.Staging:
    """Where the model's bytes go, for as long as the job is this worker's: LeaseLost after that."""
    return archives.Staging(database, claim.token, lambda db: _mine(job_rows.change(db, claim.job.id, {}, claim.token)))


def finish(database: Database, claim: Claim, archive_id: UUID, about: dict[str, Any], warnings: list[str]) -> str:
    """Publish the version, move the alias and end the job, in one transaction; gives the version."""
    spec, actor = claim.spec, Actor(claim.job.owner)
    name, alias = str(spec.publish["name"]), spec.publish["alias"]

    def publish(db: Connection) -> str:
        _mine(job_rows.change(db, claim.job.id, {}, claim.token))
        number = registry.insert(db, name, archive_id, about, actor, alias)
        result = {
            "model": {"name": name, "version": number},
            "metrics": about["metrics"],
            "curve": about["curve"],
            "warnings": warnings,
        }
        progress = {"phase": "done", "fraction": 1.0, "trees": about["trees"], "mean_cost": about["metrics"].get("mean_cost")}
        done = {"status": "done", "result": result, "progress": progress, "finished_at": now()}
        _mine(job_rows.change(db, claim.job.id, OVER | done, claim.token))
        job_rows.add_event(db, claim.job.id, "done", {**progress, "model": result["model"]})
        return f"{name}:{number}"

    return database.write(publish)


def fail(database: Database, claim: Claim, detail: str) -> None:
    """End the job for good: the same would happen again."""
    _give_up_token(database, claim, lambda db: _failed(db, claim.job.id, detail, claim.token))


def again(database: Database, claim: Claim, why: str) -> None:
    """Let the job be tried again, unless that was its last attempt."""
    if claim.job.attempts >= ATTEMPTS:
        fail(database, claim, _gave_up(why))
    else:
        _give_up_token(database, claim, lambda db: _queued(db, claim, WAITING, why))


def release(database: Database, claim: Claim) -> None:
    """Give the job back unharmed: its worker was told to stop, which is no attempt."""
    fewer = WAITING | {"attempts": claim.job.attempts - 1}
    _give_up_token(database, claim, lambda db: _queued(db, claim, fewer, "its worker was stopped"))


def _give_up_token(database: Database, claim: Claim, change: Callable[[Connection], bool]) -> None:
    """A change after which the token is nobody's, and what was staged under it goes."""

    def write(db: Connection) -> None:
        _mine(change(db))
        _condemn(db, claim.token)

    database.write(write)
    archives.drop_condemned(database)


def release_all(database: Database) -> None:
    """Let the leases of a process that is gone run out at once, and its uploads go: an SQLite file has one process, and this is it."""
    database.write(job_rows.lapse_all)
    database.write(archives.condemn_unused)
    archives.drop_condemned(database)


def cancel(database: Database, actor: Actor, id: UUID) -> Any:
    """End a job that waits or runs; cancelling twice is the same as once."""

    def end(db: Connection) -> Any:
        before = job_rows.locked(db, id)
        if before is None:
            raise JobNotFound()
        if job_rows.change(db, id, OVER | {"status": "cancelled", "finished_at": now()}):
            _condemn(db, before.lease_token)
            job_rows.add_event(db, id, "cancelled", {})
            audit.record(db, actor, "job.cancel", str(id), {})
        elif before.status != "cancelled":
            raise JobOver(f"The job is {before.status}: there is nothing left to cancel.", job_status=before.status)
        return job_rows.one(db, id)

    row = database.write(end)
    archives.drop_condemned(database)
    return row


def _failed(db: Connection, id: UUID, detail: str, token: UUID | None = None) -> bool:
    changed = job_rows.change(db, id, OVER | {"status": "failed", "failure": detail, "finished_at": now()}, token)
    if changed:
        job_rows.add_event(db, id, "failed", {"detail": detail})
    return changed


def _queued(db: Connection, claim: Claim, values: Mapping[str, Any], why: str) -> bool:
    changed = job_rows.change(db, claim.job.id, values, claim.token)
    if changed:
        job_rows.add_event(db, claim.job.id, "queued", {"why": why})
    return changed


def _gave_up(why: str) -> str:
    return f"The training was tried {ATTEMPTS} times and did not come to its end: {why}. Try a smaller table, or fewer trees."


def _condemn(db: Connection, token: UUID | None) -> None:
    """What an attempt has staged goes, unless it was published."""
    if token is not None:
        archives.condemn(db, token)


def _mine(changed: bool) -> None:
    if not changed:
        raise LeaseLost()
