"""Sessions and decisions as the wire shows them."""

from typing import Any

from fastapi import Response
from pydantic_core import to_json

from frugal.models import Ask, Standing
from frugal.models.costs import money
from frugal.service.registry.cache import Version
from frugal.service.sessions.state import Answer, Prediction, Session
from frugal.service.sessions.steps import Seen
from frugal.service.store.tables import iso


def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON, written once: FastAPI's own way validates and copies what is already known to be right."""
    return Response(to_json(body, inf_nan_mode="null"), status, headers, "application/json")


def session_reply(seen: Seen, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    given = headers or {}
    return reply(shown_session(seen), status, given | {"Idempotent-Replayed": "true"} if seen.replayed else given)


def shown_session(seen: Seen) -> dict[str, Any]:
    session, version, standing = seen.session, seen.version, seen.standing
    return {
        "id": str(session.id),
        "model": {"name": session.name, "version": session.number},
        "status": session.status,
        "revision": session.revision,
        "reference": session.reference,
        "seed": session.seed,
        "ask": shown_question(version, standing),
        **shown_money(session.budget, session.spent),
        "aim": None if session.aim is None else money(session.aim),
        "confidence": session.confidence,
        "answers": [shown_answer(answer) for answer in session.answers],
        "prediction": shown_prediction(session, standing),
        "created_at": iso(session.created_at),
        "updated_at": iso(session.updated_at),
        "expires_at": iso(session.expires_at),
    }


def shown_model(version: Version) -> dict[str, Any]:
    return {"name": version.name, "version": version.number}


def shown_question(version: Version | None, standing: Standing | None) -> dict[str, Any] | None:
    if version is None or standing is None or not isinstance(standing.decision, Ask):
        return None
    ask = standing.decision
    return {"feature": ask.feature, "cost": ask.cost, **version.questions[ask.feature], "why": ask.why}


def shown_money(budget: int | None, spent: int) -> dict[str, float | None]:
    if budget is None:
        return {"budget": None, "spent": money(spent), "remaining": None}
    return {"budget": money(budget), "spent": money(spent), "remaining": money(max(0, budget - spent))}


def shown_answer(answer: Answer) -> dict[str, Any]:
    said = ("value", answer.value) if answer.status == "value" else ("status", answer.status)
    return {"feature": answer.feature, said[0]: said[1], "cost": money(answer.cost), "source": answer.source, "at": iso(answer.at)}


def shown_prediction(session: Session, standing: Standing | None) -> dict[str, Any] | None:
    if session.prediction is not None:
        return final_prediction(session.prediction)
    return None if standing is None else current_prediction(standing, None)


def final_prediction(prediction: Prediction) -> dict[str, Any]:
    return {
        "label": prediction.label,
        "probabilities": prediction.probabilities,
        "votes": prediction.votes,
        "final": True,
        "reason": prediction.reason,
    }


def current_prediction(standing: Standing, reason: str | None) -> dict[str, Any]:
    chances = {str(label): chance for label, chance in standing.probabilities.items()}
    votes = {str(label): share for label, share in standing.votes.items()}
    return {"label": str(standing.label), "probabilities": chances, "votes": votes, "final": reason is not None, "reason": reason}
