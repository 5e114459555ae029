"""The moves of a session: open, answer, finish, read, delete, expire. Each is judged on committed state and told after its commit."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection

from frugal.models import Standing
from frugal.models.schema import Value
from frugal.service.errors import Busy, KeyReused, Problem, SessionNotFound, VersionDamaged
from frugal.service.registry.cache import Version, Versions
from frugal.service.sessions import counting
from frugal.service.sessions.ledger import IdempotencyKey, Ledger
from frugal.service.sessions.room import Room
from frugal.service.sessions.state import Given, Session, accept, decided, ended, known_answers, standing_of
from frugal.service.sessions.stopping import found_stop
from frugal.service.store import audit, session_rows
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database
from frugal.service.store.ids import new_id
from frugal.service.store.threads import in_thread

ATTEMPTS = 20  # how often a step is judged again because another one came first
RECENT = 1024  # sessions remembered as this process last wrote them
AT_ONCE = 100  # sessions that a sweep looks at before it asks for more


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as a client is shown it: with its version and where it stands; `replayed` where nothing was done."""

    session: Session
    version: Version | None  # nobody needs that of one that is over
    standing: Standing | None  # None once it is over, and where its version cannot be loaded
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """What a client opens a session with; budget and aim are in millionths."""

    model: str
    budget: int | None = None
    known: Mapping[str, Value] | None = None
    seed: int = 0
    confidence: float | None = None
    reference: str | None = None
    aim: int | None = None


class Steps:
    """The use cases of sessions on one database."""

    def __init__(
        self, ledger: Ledger, versions: Versions, database: Database, ttl: int, most_open: int = 1_000_000, retention: int = 0
    ) -> None:
        self.ledger = ledger
        self.versions = versions
        self.database = database
        self.ttl = timedelta(seconds=ttl)
        self.retention = timedelta(seconds=retention)
        self.failed: Callable[[Exception, str], None] = lambda error, version: None
        self._room = Room(database, most_open)
        self._recent: OrderedDict[UUID, Session] = OrderedDict()

    async def open(self, owner: str, opening: Opening, key: IdempotencyKey | None = None) -> Seen:
        """Begin a session, or give again what this key began."""
        for _ in range(ATTEMPTS):
            if key is not None and (earlier := await self._opened_with(owner, key)):
                counting.replayed()
                return earlier
            version = await self.versions.find(opening.model)
            session, standing = decided(self._new(owner, opening, version), version.ensemble)
            async with self._room.taken(owner):
                kept = await self.ledger.open(session, key)
            if kept:
                counting.opened(session)
                return self._kept(_seen(session, version, standing))
        raise _busy()

    async def answer(self, owner: str, id: UUID, given: Sequence[Given]) -> Seen:
        """Record what the client brought, charge it once, and decide what comes next."""
        seen = await self._answer_recent(owner, id, given)
        for _ in range(ATTEMPTS):
            if seen is not None:
                break
            session, version = await self._current(owner, id)
            accepted = accept(session, given, version.ensemble, self.ledger.now())
            seen = _seen(session, version, replayed=True) if accepted is None else await self._append(session, accepted, version)
        if seen is None:
            raise _busy()
        return self._kept(seen)

    async def _answer_recent(self, owner: str, id: UUID, given: Sequence[Given]) -> Seen | None:
        """The same on the session as this process last wrote it, which saves reading it. The guard in `append` says whether it still is
        like that; whatever does not end in an append is judged again on what is committed."""
        session = self._recent.pop(id, None)
        if session is None or session.owner != owner or session.due(self.ledger.now()):
            return None
        version = await self.versions.get(session.name, session.number)
        try:
            accepted = accept(session, given, version.ensemble, self.ledger.now())
        except Problem:
            return None
        return None if accepted is None else await self._append(session, accepted, version)

    async def _append(self, session: Session, accepted: Session, version: Version) -> Seen | None:
        """Decide, write, and only then tell; None where another step came first."""
        after, standing = decided(accepted, version.ensemble)
        if not await self.ledger.append(session, after):
            return None
        counting.stepped(session, after)
        return _seen(after, version, standing)

    def _kept(self, seen: Seen) -> Seen:
        """Remember a session that was just written, among the latest."""
        if seen.replayed:
            counting.replayed()
        elif seen.session.running:
            self._recent[seen.session.id] = seen.session
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)
        return seen

    async def finish(self, owner: str, id: UUID) -> Seen:
        """Predict now from what is known."""
        return await self._end(owner, id, "stopped")

    async def read(self, owner: str, id: UUID) -> Seen:
        session = await self.ledger.read(id, owner)
        if session is None:
            raise SessionNotFound()
        return await self._shown(session)

    async def page(self, owner: str, before: UUID | None, limit: int, status: str | None) -> tuple[list[Seen], UUID | None]:
        """The owner's own sessions, newest first, and the last of them if there are more."""
        sessions = await self.ledger.page(owner, before, limit + 1, status)
        found = []
        for session in sessions[:limit]:
            with suppress(SessionNotFound):  # it is due, and was deleted meanwhile
                found.append(await self._shown(session))
        return found, sessions[limit - 1].id if len(sessions) > limit else None

    async def _shown(self, session: Session) -> Seen:
        """A session that was just read, ended if its time is up. What is over needs no version, not even one that can be loaded."""
        if session.due(self.ledger.now()):
            with suppress(VersionDamaged):
                return await self._end(session.owner, session.id, "expired")
        if not session.running:
            return Seen(session, None, None)
        await asyncio.sleep(0)  # a page has many of these, and deciding takes its time: whoever else waits has a turn
        try:
            return _seen(session, await self.versions.get(session.name, session.number))
        except VersionDamaged:
            return Seen(session, None, None)  # its answers are there all the same

    async def delete(self, actor: Actor, id: UUID) -> None:
        """Delete a session of the actor's own with all its answers."""

        def drop(db: Connection) -> None:
            if not session_rows.drop(db, id, actor.owner):
                raise SessionNotFound()
            audit.record(db, actor, "session.delete", str(id), {})

        await in_thread(self.database.write, drop)

    async def sweep(self) -> None:
        """Finalise sessions whose time is up and forget what is past its time."""
        await self._expire_all()
        await in_thread(self.database.write, session_rows.drop_old_keys)
        if self.retention:
            while await in_thread(self.database.write, lambda db: session_rows.drop_past(db, self.retention, AT_ONCE)) == AT_ONCE:
                pass

    async def _expire_all(self) -> None:
        """Every session whose time is up, once. Those that cannot be ended are left behind: they must not keep the others."""
        last: Any = None
        damaged: set[tuple[str, int]] = set()
        while due := await in_thread(self.database.read, partial(session_rows.due, limit=AT_ONCE, after=last, without=damaged)):
            for last in due:
                if (last.name, last.number) not in damaged and not await self._expire(last):
                    damaged.add((last.name, last.number))

    async def _expire(self, due: Any) -> bool:
        """False where its version cannot be loaded, so that no session on it can be ended."""
        loaded = False
        try:
            await self.versions.get(due.name, due.number)
            loaded = True
            await self._end(due.owner, due.id, "expired")
        except SessionNotFound:  # deleted meanwhile
            pass
        except Exception as error:
            self.failed(error, f"{due.name}:{due.number}")
            await self.ledger.ping()  # a database that is away ends the sweep; trouble with one session does not
        return loaded

    async def _current(self, owner: str, id: UUID) -> tuple[Session, Version]:
        """The session as it is now: one whose time is up is finalised first."""
        session = await self.ledger.read(id, owner)
        if session is None:
            raise SessionNotFound()
        version = await self.versions.get(session.name, session.number)
        if not session.due(self.ledger.now()):
            return session, version
        seen = await self._end(owner, id, "expired")
        return seen.session, version

    async def _end(self, owner: str, id: UUID, reason: Literal["stopped", "expired"]) -> Seen:
        """End a session that is under way, for this reason or because its time is up; one that is over stays as it is."""
        for _ in range(ATTEMPTS):
            session = await self.ledger.read(id, owner)
            if session is None:
                raise SessionNotFound()
            version = await self.versions.get(session.name, session.number)
            if not session.running:
                return _seen(session, version, replayed=True)
            at = self.ledger.now()
            after = ended(session, version.ensemble, "expired" if session.due(at) else reason, at)
            if await self.ledger.append(session, after):
                counting.ended(after)
                return _seen(after, version)
        raise _busy()

    async def _opened_with(self, owner: str, key: IdempotencyKey) -> Seen | None:
        """The first reply to this key: the session as it was opened, whatever has come since."""
        found = await self.ledger.opened_with(owner, key.key)
        if found is None:
            return None
        id, body_sha256 = found
        if body_sha256 != key.body_sha256:
            raise KeyReused("This Idempotency-Key was used with another body within the last 24 hours: take a new key for a new request.")
        session = await self.ledger.read(id, owner)
        if session is None:
            return None  # deleted, and its key with it
        version = await self.versions.get(session.name, session.number)
        first, standing = decided(session.as_opened(), version.ensemble)
        return _seen(first, version, standing, replayed=True)

    def _new(self, owner: str, opening: Opening, version: Version) -> Session:
        at = self.ledger.now()
        return Session(
            id=new_id(),
            owner=owner,
            name=version.name,
            number=version.number,
            status="open",
            revision=1,
            reference=opening.reference,
            seed=opening.seed,
            aim=opening.aim,
            confidence=opening.confidence,
            stop=found_stop(version.ensemble, opening.budget, opening.aim, opening.confidence),
            budget=opening.budget,
            spent=0,
            answers=known_answers(version.ensemble, opening.known or {}, at),
            prediction=None,
            created_at=at,
            updated_at=at,
            expires_at=at + self.ttl,
        )


async def sweep_forever(steps: Steps, every: float, failed: Callable[[Exception], None]) -> None:
    """Sweep until cancelled; a sweep that fails, for whatever reason, is told and tried again at the next."""
    while True:
        await asyncio.sleep(every)
        try:
            await steps.sweep()
        except Exception as error:
            failed(error)


def _seen(session: Session, version: Version, standing: Standing | None = None, replayed: bool = False) -> Seen:
    if not session.running:
        return Seen(session, version, None, replayed)
    return Seen(session, version, standing or standing_of(session, version.ensemble), replayed)


def _busy() -> Busy:
    return Busy("Too many steps on this session at once. Nothing was recorded: send the same request again.")
