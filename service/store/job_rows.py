"""Jobs and their events: rows in, rows out. What a job may become is in service.training.jobs.

Leases end by the database's clock, so that workers on several machines agree.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, and_, delete, exists, insert, or_, select, tuple_, update

from frugal.service.store.clock import clock
from frugal.service.store.inserting import insert_new
from frugal.service.store.tables import idempotency_keys, job_events, jobs, now

ROUTE = "POST /v1/admin/training-jobs"  # the route that an Idempotency-Key of a job belongs to
ACTIVE = ("queued", "running")


def insert_job(db: Connection, row: Mapping[str, Any]) -> None:
    db.execute(insert(jobs).values(**row))


def insert_key(db: Connection, owner: str, key: str, body_sha256: str, job_id: UUID) -> bool:
    """False where the key is taken, after waiting for a twin in flight."""
    row = {"owner": owner, "route": ROUTE, "key": key, "body_sha256": body_sha256, "job_id": job_id, "created_at": clock(db)}
    return insert_new(db, idempotency_keys, row)


def keyed(db: Connection, owner: str, key: str) -> Any:
    """The job that this key submitted, and the hash of the body it came with."""
    where = (idempotency_keys.c.owner == owner, idempotency_keys.c.route == ROUTE, idempotency_keys.c.key == key)
    return db.execute(select(idempotency_keys.c.job_id, idempotency_keys.c.body_sha256).where(*where)).one_or_none()


def one(db: Connection, id: UUID) -> Any:
    return db.execute(select(jobs).where(jobs.c.id == id)).one_or_none()


def locked(db: Connection, id: UUID) -> Any:
    """The same, and nobody changes it until this transaction ends."""
    return db.execute(select(jobs).where(jobs.c.id == id).with_for_update()).one_or_none()


def listed(db: Connection, before: UUID | None, limit: int, status: str | None) -> list[Any]:
    """Newest first."""
    query = select(jobs).order_by(jobs.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(jobs.c.id < before)
    if status is not None:
        query = query.where(jobs.c.status == status)
    return list(db.execute(query))


def next_claimable(db: Connection, at: datetime) -> Any:
    """The oldest job that is queued or whose lease has run out, locked: others who look meanwhile see the next one."""
    lapsed = and_(jobs.c.status == "running", jobs.c.lease_until < at)
    query = select(jobs).where(jobs.c.status.in_(ACTIVE), or_(jobs.c.status == "queued", lapsed)).order_by(jobs.c.id)
    return db.execute(query.limit(1).with_for_update(skip_locked=True)).one_or_none()


def change(db: Connection, id: UUID, values: Mapping[str, Any], token: UUID | None = None, statuses: Sequence[str] = ACTIVE) -> bool:
    """Change a job in one of these statuses; with a token, only while it is the lease's. Says whether it was done."""
    where = [jobs.c.id == id, jobs.c.status.in_(statuses)]
    if token is not None:
        where.append(jobs.c.lease_token == token)
    return bool(db.execute(update(jobs).where(*where).values(updated_at=now(), **values)).rowcount)


def add_event(db: Connection, id: UUID, kind: str, data: Mapping[str, Any]) -> None:
    """The next event of a job. The job's row is locked by this, so numbers have no gaps and become visible in order."""
    number = db.execute(update(jobs).where(jobs.c.id == id).values(events=jobs.c.events + 1).returning(jobs.c.events)).scalar_one()
    db.execute(insert(job_events).values(job_id=id, number=number, at=now(), kind=kind, data=dict(data)))


def standings(db: Connection, ids: Sequence[UUID]) -> dict[UUID, tuple[bool, int]]:
    """Of each job that there is, whether it is over and how many events it has: what is over has no more to come."""
    query = select(jobs.c.id, jobs.c.status, jobs.c.events).where(jobs.c.id.in_(ids))
    return {id: (status not in ACTIVE, events) for id, status, events in db.execute(query)}


def events_after(db: Connection, id: UUID, number: int, limit: int) -> list[Any]:
    query = select(job_events).where(job_events.c.job_id == id, job_events.c.number > number)
    return list(db.execute(query.order_by(job_events.c.number).limit(limit)))


def lapse_all(db: Connection) -> None:
    """Every running job may be claimed again from now on."""
    db.execute(update(jobs).where(jobs.c.status == "running").values(lease_until=clock(db) - timedelta(seconds=1)))


def drop_past(db: Connection, kept: timedelta, most: int) -> int:
    """Delete events of jobs that ended that long ago, and then such jobs, at most so many rows; says how many.

    A job stays as long as its Idempotency-Key, under which its submission may still be repeated.
    """
    keyed = exists().where(idempotency_keys.c.job_id == jobs.c.id)
    past = select(jobs.c.id).where(jobs.c.finished_at <= clock(db) - kept, ~keyed)
    event = (job_events.c.job_id, job_events.c.number)
    events = select(*event).where(job_events.c.job_id.in_(past)).limit(most)
    if dropped := db.execute(delete(job_events).where(tuple_(*event).in_(events))).rowcount:
        return dropped
    return db.execute(delete(jobs).where(jobs.c.id.in_(past.limit(most)))).rowcount
