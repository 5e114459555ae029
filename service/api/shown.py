"""Shapes of replies that several routes share."""

from typing import Annotated, Any, Literal

from pydantic import Field

from frugal.service.api.shapes import Strict

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Reason = Literal["leaf", "decided", "confident", "budget", "exhausted", "aim", "stopped", "expired"]


class Question(Strict):
    feature: str
    cost: float
    kind: Literal["numeric", "categorical"]
    categories: list[Any] | None
    unit: str | None
    question: str | None
    delayed: bool
    why: dict[str, float]


class ShownModel(Strict):
    name: str
    version: int


class ShownAnswer(Strict):
    feature: str
    value: Any = None
    status: Literal["unavailable", "pending"] | None = None
    cost: float
    source: Literal["known", "answer"]
    at: Moment


class ShownPrediction(Strict):
    label: str
    probabilities: dict[str, float] = Field(description="how likely each label is to be true")
    votes: dict[str, float] = Field(description="the share of the trees' votes that each label has")
    final: bool
    reason: Reason | None


class SessionShown(Strict):
    """A session: what it asks for, what it has spent, what it would predict now."""

    id: str
    model: ShownModel
    status: Literal["open", "waiting", "done", "expired"]
    revision: int
    reference: str | None
    seed: int
    ask: Question | None
    budget: float | None
    spent: float
    remaining: float | None
    aim: float | None = Field(description="as it was asked for, like the confidence")
    confidence: float | None
    answers: list[ShownAnswer]
    prediction: ShownPrediction | None = Field(description="null where the version's stored bytes are damaged")
    created_at: Moment
    updated_at: Moment
    expires_at: Moment


class SessionsShown(Strict):
    items: list[SessionShown]
    next: str | None
