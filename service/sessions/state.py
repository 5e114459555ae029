"""What a session is and its legal moves; pure. Every move gives a new Session, and the ledger writes the difference.

Named tuples, not frozen dataclasses: a step makes a dozen, and those take three times as long to make.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from frugal.models import Ensemble, Standing, Stop, Wait, stand
from frugal.models.costs import Basket, money
from frugal.models.frontier import Stopping
from frugal.models.schema import Value, WrongValueError
from frugal.service.errors import AnswerConflict, OverBudget, SessionClosed, WrongAnswer

Kind = Literal["value", "pending", "unavailable"]


class Given(NamedTuple):
    """What a client brings for one feature."""

    feature: str
    status: Kind
    value: Value = None


class Answer(NamedTuple):
    """What is stored for one feature: a line of the ledger. `cost` is in millionths."""

    feature: str
    status: Kind
    value: Value
    cost: int
    bought: bool  # its purchase set the prices; an order that came to nothing was bought too
    source: Literal["known", "answer"]
    at: datetime


class Prediction(NamedTuple):
    """The final word on a case."""

    label: str
    probabilities: dict[str, float]
    votes: dict[str, float]
    reason: str


class Session(NamedTuple):
    """One prediction in progress. Money is in millionths."""

    id: UUID
    owner: str
    name: str
    number: int
    status: Literal["open", "waiting", "done", "expired"]
    revision: int
    reference: str | None
    seed: int
    aim: int | None  # as it was asked for, like the confidence
    confidence: float | None
    stop: Stopping  # what both came to when the session opened: no later version changes it
    budget: int | None
    spent: int
    answers: tuple[Answer, ...]
    prediction: Prediction | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime

    @property
    def running(self) -> bool:
        return self.status in ("open", "waiting")

    @property
    def remaining(self) -> int | None:
        return None if self.budget is None else self.budget - self.spent

    def due(self, now: datetime) -> bool:
        """Whether its time is up but nobody has said so yet."""
        return self.running and now >= self.expires_at

    def as_opened(self) -> "Session":
        """The session as it was before its first step, undecided."""
        known = tuple(answer for answer in self.answers if answer.source == "known")
        return self._replace(status="open", revision=1, spent=0, answers=known, prediction=None, updated_at=self.created_at)


def known_answers(ensemble: Ensemble, known: Mapping[str, Value], now: datetime) -> tuple[Answer, ...]:
    """What a client knows when it opens a session: free, and opening no group. Features that no tree uses are left out."""
    answers = []
    for number, (name, value) in enumerate(known.items(), 1):
        if name not in ensemble.schema.index:
            raise WrongAnswer(f"known.#{number}: {known_features(ensemble)}")
        if name in ensemble.used:
            checked = _checked(ensemble, name, value)
            answers.append(Answer(name, "value" if value is not None else "unavailable", checked, 0, False, "known", now))
    return tuple(answers)


def accept(session: Session, given: Sequence[Given], ensemble: Ensemble, now: datetime) -> Session | None:
    """The session with these answers recorded and charged, not yet decided; None where all of them are stored already."""
    stored = {answer.feature: answer for answer in session.answers}
    new = [item for item in given if not _same(stored.get(item.feature), item)]
    if not new:
        return None
    values = [_usable(ensemble, item, given) for item in new]
    for item in new:
        if item.feature in stored and (stored[item.feature].status != "pending" or item.status == "pending"):
            raise _conflict(stored[item.feature])
    if not session.running:
        raise SessionClosed(f"The session is over ({session.status}): open another one.", session_status=session.status)
    priced = price(ensemble, session.answers, new)
    cost = sum(priced)
    if session.remaining is not None and cost > session.remaining:
        raise OverBudget(
            f"This costs {_amount(cost)}, and {_amount(session.remaining)} remains of the budget. Nothing was recorded.",
            cost=money(cost),
            remaining=money(session.remaining),
        )
    return session._replace(
        spent=session.spent + cost,
        revision=session.revision + 1,
        answers=_recorded(session.answers, new, values, priced, now),
        updated_at=now,
    )


def price(ensemble: Ensemble, answers: Sequence[Answer], new: Sequence[Given]) -> list[int]:
    """What these cost one after the other: what is unavailable nothing, what was ordered before no more."""
    basket = Basket(ensemble.costs, (answer.feature for answer in answers if answer.bought))
    return [0 if item.status == "unavailable" else basket.buy(item.feature) for item in new]


def decided(session: Session, ensemble: Ensemble) -> tuple[Session, Standing]:
    """The session with the status that its answers give it, and where it stands."""
    standing = standing_of(session, ensemble)
    decision = standing.decision
    if isinstance(decision, Stop):
        return _over(session, "done", standing, decision.reason), standing
    status: Literal["open", "waiting"] = "waiting" if isinstance(decision, Wait) else "open"
    return session if session.status == status else session._replace(status=status), standing


def ended(session: Session, ensemble: Ensemble, reason: Literal["stopped", "expired"], now: datetime) -> Session:
    """The session finalised from what is known, by its client or by the clock."""
    moved = session._replace(revision=session.revision + 1, updated_at=now)
    return _over(moved, "expired" if reason == "expired" else "done", standing_of(session, ensemble), reason)


def standing_of(session: Session, ensemble: Ensemble) -> Standing:
    """The decision that the answers lead to: the same in any process, because it is nothing but their replay."""
    return stand(
        ensemble,
        {answer.feature: answer.value for answer in session.answers if answer.status != "pending"},
        None if session.budget is None else money(session.budget),
        money(session.spent),
        session.seed,
        bought=[answer.feature for answer in session.answers if answer.bought],
        pending=[answer.feature for answer in session.answers if answer.status == "pending"],
        confidence=session.stop.confidence,
        cap=session.stop.cap,
    )


def _over(session: Session, status: Literal["done", "expired"], standing: Standing, reason: str) -> Session:
    chances = {str(label): chance for label, chance in standing.probabilities.items()}
    votes = {str(label): share for label, share in standing.votes.items()}
    return session._replace(status=status, prediction=Prediction(str(standing.label), chances, votes, reason))


def _same(stored: Answer | None, item: Given) -> bool:
    """Whether an item says what is stored."""
    return stored is not None and stored.status == item.status and (item.status != "value" or _equal(stored.value, item.value))


def _equal(stored: Value, given: Value) -> bool:
    """Numbers by value, as floats where they are stored as floats; and true is not 1."""
    if isinstance(stored, bool) != isinstance(given, bool):
        return False
    try:
        return (float(given) if isinstance(stored, float) and isinstance(given, int) else given) == stored
    except OverflowError:
        return False


def _usable(ensemble: Ensemble, item: Given, given: Sequence[Given]) -> Value:
    if item.feature not in ensemble.schema.index:
        place = f"answers.{given.index(item)}: " if len(given) > 1 else ""
        raise WrongAnswer(place + known_features(ensemble))
    if item.feature not in ensemble.used:
        raise WrongAnswer(f"No tree of this version uses {item.feature!r}: there is no need to buy it.", feature=item.feature)
    return _checked(ensemble, item.feature, item.value) if item.status == "value" else None


def _checked(ensemble: Ensemble, name: str, value: Value) -> Value:
    """A value as the schema writes it: a float, or the category itself."""
    try:
        return ensemble.schema.decode(name, ensemble.schema.encode(name, value))
    except WrongValueError as error:
        raise WrongAnswer(f"{name!r}: expected {error.feature.expects()}.", feature=name) from None


def known_features(ensemble: Ensemble) -> str:
    """What to say to a name that is none: those there are, and not the name, which may be anything."""
    names = ", ".join(map(repr, ensemble.schema.names[:20])) + (", ..." if len(ensemble.schema) > 20 else "")
    return f"There is no feature of this name: this version knows {names}."


def _conflict(stored: Answer) -> AnswerConflict:
    return AnswerConflict(
        f"{stored.feature!r} is already answered ({stored.source}), and this says something else. What is stored stays.",
        feature=stored.feature,
    )


def _amount(cost: int) -> str:
    return f"{money(cost):.6f}".rstrip("0").rstrip(".")


def _recorded(
    answers: tuple[Answer, ...], new: Sequence[Given], values: Sequence[Any], costs: Sequence[int], now: datetime
) -> tuple[Answer, ...]:
    """Pending answers that came in are filled where they stand, at the cost already paid; the others follow in their order."""
    lines = {answer.feature: answer for answer in answers}
    for item, value, cost in zip(new, values, costs, strict=True):
        if item.feature in lines:
            lines[item.feature] = lines[item.feature]._replace(status=item.status, value=value, at=now)
        else:
            lines[item.feature] = Answer(item.feature, item.status, value, cost, item.status != "unavailable", "answer", now)
    return tuple(lines.values())
