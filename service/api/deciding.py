"""Decisions with no session kept: the next question, and whole rows at once."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from frugal.models import Ensemble, Stop, acquire
from frugal.models.frontier import Stopping
from frugal.models.schema import UnknownFeatureError, WrongValueError
from frugal.service.api.access import Caller, TheVersions
from frugal.service.api.bodies import ClientRoute, LargeRoute
from frugal.service.api.problems import BODY, always, documented
from frugal.service.api.shapes import (
    AIM,
    Confidence,
    ItemsOrMapping,
    Known,
    Money,
    Reference,
    Seed,
    Strict,
    answers_of,
    example,
    in_millionths,
    one_stop,
)
from frugal.service.api.showing import current_prediction, reply, shown_model, shown_money, shown_question
from frugal.service.api.shown import Question, ShownModel, ShownPrediction
from frugal.service.errors import AnswerConflict, ModelNotFound, WrongAnswer
from frugal.service.registry.cache import Version
from frugal.service.sessions.preview import preview
from frugal.service.sessions.state import known_features
from frugal.service.sessions.stopping import found_stop
from frugal.service.store.threads import compute

router = APIRouter(prefix="/v1", tags=["decisions"], route_class=ClientRoute, responses=always())
large = APIRouter(prefix="/v1", tags=["decisions"], route_class=LargeRoute, responses=always())


class Next(Strict):
    """A case as it stands: what is known for free, and what was paid for."""

    model_config = example({"model": "heart", "known": {"age": 63}, "answers": {"chest_pain": "typical"}, "budget": 60})

    model: Reference
    known: Known | None = None
    answers: ItemsOrMapping | None = Field(None, description="what was bought, in order: items as in a session, or features with values")
    budget: Money | None = None
    spent: Money | None = Field(None, description="what was spent so far; by default what the answers cost, in their order")
    seed: Seed = 0
    aim: Money | None = Field(None, description=AIM)
    confidence: Confidence | None = None

    _one_stop = model_validator(mode="after")(one_stop)


class NextShown(Strict):
    model: ShownModel
    status: str
    seed: int
    ask: Question | None
    budget: float | None
    spent: float
    remaining: float | None
    prediction: ShownPrediction


class Predict(Strict):
    """Rows of raw values by feature; what a row leaves out, or null, is unavailable."""

    model_config = example({"model": "heart", "rows": [{"age": 63, "chest_pain": "typical", "resting_bp": 145}], "budget": 60})

    model: Reference
    rows: Annotated[list[dict[str, Any]], Field(fail_fast=True)]
    budget: Money | None = Field(None, description="a hard limit per row")
    aim: Money | None = Field(None, description=AIM)
    confidence: Confidence | None = None

    _one_stop = model_validator(mode="after")(one_stop)


class RowShown(Strict):
    label: str
    probabilities: dict[str, float]
    votes: dict[str, float]
    cost: float
    features: list[str]


class Predicted(Strict):
    model: ShownModel
    rows: list[RowShown]


@router.post("/next", response_model=NextShown, responses=documented(*BODY, WrongAnswer, AnswerConflict, ModelNotFound))
async def next_question(body: Next, caller: Caller, versions: TheVersions) -> Response:
    """The decision that a session with these answers would come to; nothing is kept."""
    version = await versions.find(body.model)
    given = [item.given() for item in body.answers] if isinstance(body.answers, list) else answers_of(body.answers or {})
    budget, spent = in_millionths(body.budget), in_millionths(body.spent)
    stop = found_stop(version.ensemble, budget, in_millionths(body.aim), body.confidence)
    case = preview(version, body.known or {}, given, budget, spent, body.seed, stop)
    reason = case.standing.decision.reason if isinstance(case.standing.decision, Stop) else None
    return reply(
        {
            "model": shown_model(version),
            "status": case.status,
            "seed": body.seed,
            "ask": shown_question(version, case.standing),
            **shown_money(budget, case.spent),
            "prediction": current_prediction(case.standing, reason),
        }
    )


@large.post("/predict", response_model=Predicted, responses=documented(*BODY, WrongAnswer, ModelNotFound))
async def predict(request: Request, body: Predict, caller: Caller, versions: TheVersions) -> Response:
    """Per row, what a session over it would have said and paid: label, probabilities, votes, cost and features bought."""
    version = await versions.find(body.model)
    stop = found_stop(version.ensemble, in_millionths(body.budget), in_millionths(body.aim), body.confidence)
    await request.app.state.kernels.ready("predicting")
    return await compute(_predicted, version, body.rows, body.budget, stop)


def _predicted(version: Version, rows: list[dict[str, Any]], budget: float | None, stop: Stopping) -> Response:
    ensemble = version.ensemble
    try:
        codes = ensemble.schema.encode_rows(rows, ensemble.used)
    except WrongValueError as error:
        name = error.feature.name
        raise WrongAnswer(f"row {error.row}, {name!r}: expected {error.feature.expects()}.", feature=name, row=error.row) from None
    except UnknownFeatureError as error:
        raise WrongAnswer(f"row {error.row}: {known_features(ensemble)}", row=error.row) from None
    found = acquire(ensemble, codes, budget, confidence=stop.confidence, cap=stop.cap)
    labels = [str(label) for label in ensemble.classes]
    names = ensemble.schema.names
    rows_shown = [
        {
            "label": str(label),
            "probabilities": dict(zip(labels, chances, strict=True)),
            "votes": dict(zip(labels, votes, strict=True)),
            "cost": cost,
            "features": [names[i] for i in bought],
        }
        for label, chances, votes, cost, bought in zip(
            found.labels.tolist(),
            found.probabilities.tolist(),
            found.votes.tolist(),
            found.cost.tolist(),
            _bought(ensemble, found.acquired),
            strict=True,
        )
    ]
    return reply({"model": shown_model(version), "rows": rows_shown})


def _bought(ensemble: Ensemble, acquired: Annotated[Any, "rows x features"]) -> list[list[int]]:
    """Per row, the positions of the features bought."""
    bought: list[list[int]] = [[] for _ in range(len(acquired))]
    for row, feature in zip(*(axis.tolist() for axis in acquired.nonzero()), strict=True):
        bought[row].append(feature)
    return bought
