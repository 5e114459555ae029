"""Sessions over HTTP: open, answer, read, list, finish, delete."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Response
from pydantic import Discriminator, Field, Tag, model_validator

from frugal.service.api.access import Caller, TheSteps
from frugal.service.api.bodies import ClientRoute, StepRoute
from frugal.service.api.paging import Cursor, Limit, parse_cursor, parse_id
from frugal.service.api.problems import BODY, always, documented
from frugal.service.api.replaying import IdempotencyHeader, fingerprint
from frugal.service.api.shapes import (
    AIM,
    Confidence,
    Item,
    Items,
    Known,
    Money,
    Reference,
    Seed,
    Strict,
    Text,
    example,
    in_millionths,
    one_stop,
)
from frugal.service.api.showing import reply, session_reply, shown_session
from frugal.service.api.shown import SessionShown, SessionsShown
from frugal.service.errors import (
    AnswerConflict,
    KeyReused,
    ModelNotFound,
    OverBudget,
    SessionClosed,
    SessionNotFound,
    WrongAnswer,
)
from frugal.service.sessions.ledger import IdempotencyKey
from frugal.service.sessions.steps import Opening

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=ClientRoute, responses=always())
step = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=StepRoute, responses=always())


class OpenSession(Strict):
    """What a session begins with."""

    model_config = example({"model": "heart", "budget": 60, "known": {"age": 63}, "reference": "case 17"})

    model: Reference
    budget: Money | None = Field(None, description="the most that may be spent on this case; null: no limit")
    known: Known | None = Field(None, description="features that are known already: free")
    seed: Seed = 0
    aim: Money | None = Field(None, description=AIM)
    confidence: Confidence | None = Field(None, description="stop once the leading label's probability reaches this; 1: never by that")
    reference: Annotated[Text, Field(max_length=200)] | None = Field(None, description="the client's own words for the case")

    _one_stop = model_validator(mode="after")(one_stop)


class Several(Strict):
    """Several answers at once: all or nothing."""

    model_config = example({"answers": [{"feature": "chest_pain", "value": "typical"}, {"feature": "cholesterol", "status": "pending"}]})

    answers: Annotated[Items, Field(min_length=1)]


def _one_or_several(body: Any) -> str:
    return "<several>" if isinstance(body, dict) and "answers" in body else "<one>"


AnswerBody = Annotated[Annotated[Item, Tag("<one>")] | Annotated[Several, Tag("<several>")], Discriminator(_one_or_several)]


@router.post("", status_code=201, response_model=SessionShown, responses=documented(*BODY, WrongAnswer, KeyReused, ModelNotFound))
async def open_session(
    body: OpenSession,
    caller: Caller,
    steps: TheSteps,
    idempotency_key: IdempotencyHeader = None,
) -> Response:
    """Open a session. With an `Idempotency-Key`, the same request again gives the first reply again."""
    budget, aim = in_millionths(body.budget), in_millionths(body.aim)
    opening = Opening(body.model, budget, body.known, body.seed, body.confidence, body.reference, aim)
    key = None if idempotency_key is None else IdempotencyKey(idempotency_key, fingerprint(body))
    seen = await steps.open(caller.owner, opening, key)
    return session_reply(seen, 201, {"Location": f"/v1/sessions/{seen.session.id}"})


@step.post("/{id}/answers", response_model=SessionShown, responses=documented(
    *BODY, SessionNotFound, WrongAnswer, AnswerConflict, SessionClosed, OverBudget
))  # fmt: skip
async def answer_session(id: str, body: Annotated[AnswerBody, Body()], caller: Caller, steps: TheSteps) -> Response:
    """Bring one answer or several. What is stored already is not charged again."""
    given = [item.given() for item in body.answers] if isinstance(body, Several) else [body.given()]
    return session_reply(await steps.answer(caller.owner, _id(id), given))


@router.get("/{id}", response_model=SessionShown, responses=documented(SessionNotFound))
async def read_session(id: str, caller: Caller, steps: TheSteps) -> Response:
    """The session as it stands: a client that lost a reply reads it here."""
    return reply(shown_session(await steps.read(caller.owner, _id(id))))


@router.get("", response_model=SessionsShown)
async def list_sessions(
    caller: Caller,
    steps: TheSteps,
    limit: Limit = 20,
    cursor: Cursor = None,
    status: Literal["open", "waiting", "done", "expired"] | None = None,
) -> Response:
    """The caller's own sessions, newest first."""
    before = parse_cursor(cursor)
    page, last = await steps.page(caller.owner, before, limit, status)
    return reply({"items": [shown_session(seen) for seen in page], "next": str(last) if last else None})


@router.post("/{id}/finish", response_model=SessionShown, responses=documented(*BODY, SessionNotFound))
async def finish_session(id: str, caller: Caller, steps: TheSteps, body: Strict | None = None) -> Response:
    """Predict now from what is known."""
    return reply(shown_session(await steps.finish(caller.owner, _id(id))))


@router.delete("/{id}", status_code=204, responses=documented(SessionNotFound))
async def delete_session(id: str, caller: Caller, steps: TheSteps) -> Response:
    """Delete a session with all its answers."""
    await steps.delete(caller.actor, _id(id))
    return Response(status_code=204)


def _id(text: str) -> UUID:
    found = parse_id(text)
    if found is None:
        raise SessionNotFound()
    return found
