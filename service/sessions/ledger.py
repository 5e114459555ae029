"""The ledger: the hot SQL of sessions, straight through the driver. A charge is acknowledged only after its commit.

Every write to a session is one transaction around

    UPDATE sessions SET spent = spent + :charge, revision = revision + 1, ...
    WHERE id = :id AND revision = :seen AND status IN ('open', 'waiting') AND (budget IS NULL OR spent + :charge <= budget)

and the lines of `answers` that depend on it. No row updated: somebody else was first, so `append` says False and the caller reads and
judges again. docs/decisions/0004 has the variants that overspend.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from frugal.models.costs import millionths, money
from frugal.models.frontier import Stopping
from frugal.service.sessions.state import Answer, Prediction, Session

OPENING = "POST /v1/sessions"  # the route that an Idempotency-Key of an opening belongs to


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key that a client chose for an opening, and the hash of the body it came with."""

    key: str
    body_sha256: str


class Ledger(Protocol):
    """What steps need of a database."""

    def now(self) -> datetime:
        """What time it is by the database, as far as it was asked lately."""

    async def read(self, id: UUID, owner: str) -> Session | None:
        """The session as it is committed now."""

    async def page(self, owner: str, before: UUID | None, limit: int, status: str | None) -> list[Session]:
        """The owner's sessions, newest first, in one query."""

    async def open(self, session: Session, key: IdempotencyKey | None) -> bool:
        """Keep a new session; False where the key is taken."""

    async def opened_with(self, owner: str, key: str) -> tuple[UUID, str] | None:
        """The session that this key opened, and the hash of the body it came with."""

    async def append(self, before: Session, after: Session) -> bool:
        """Write what a move changed; False where the session is no longer as it was before."""

    async def ping(self) -> None:
        """Whether the database answers, and what time it is there."""

    def connections(self) -> dict[str, int]:
        """How many connections there are, by state."""

    async def close(self) -> None: ...


def new_lines(before: Session, after: Session) -> list[tuple[int, Answer]]:
    """The answers that a move added, with their positions."""
    return list(enumerate(after.answers))[len(before.answers) :]


def filled_lines(before: Session, after: Session) -> list[Answer]:
    """The pending answers that a move filled."""
    return [new for old, new in zip(before.answers, after.answers, strict=False) if old is not new]


def value_json(answer: Answer) -> str | None:
    return json.dumps(answer.value) if answer.status == "value" else None


def prediction_json(prediction: Prediction | None) -> str | None:
    if prediction is None:
        return None
    return json.dumps(prediction._asdict())


def stop_columns(stop: Stopping) -> tuple[float | None, int | None]:
    """The confidence and the cap as they are stored."""
    return stop.confidence, None if stop.cap is None else millionths(stop.cap, "the cap")


def session_of(id: UUID, owner: str, row: Iterable[Any]) -> Session:
    """A session from the columns that both databases select, in its fields' order; the answers are one JSON array."""
    (name, number, status, revision, reference, seed, aim, confidence, sure, cap, budget, spent, lines, said, *times) = row
    return Session(
        id,
        owner,
        name,
        number,
        status,
        revision,
        reference,
        seed,
        aim,
        confidence,
        Stopping(sure, None if cap is None else money(cap)),
        budget,
        spent,
        tuple(_answer(*line) for line in json.loads(lines)) if lines else (),
        _prediction(json.loads(said)) if said else None,
        *times,
    )


def _prediction(said: dict[str, Any]) -> Prediction:
    """What was said; before votes were told apart, they were told as probabilities."""
    return Prediction(**{"votes": said["probabilities"]} | said)


def _answer(feature: str, status: Any, value: Any, cost: int, bought: Any, source: Any, at: str) -> Answer:
    return Answer(feature, status, value, cost, bool(bought), source, datetime.fromisoformat(at))
