"""Sessions from Python: driven from beginning to end, or step by step; and decisions of which nothing is kept."""

import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from frugal.service.client.problems import ClientError, Json, Problem
from frugal.service.client.wire import Wire, given, path_of

POLL = 1.0  # seconds between two looks at a session of which nothing has come in


class Missing(Enum):
    """What `acquire` gives for a feature that has no value, or none yet."""

    UNAVAILABLE = "unavailable"
    PENDING = "pending"


UNAVAILABLE, PENDING = Missing.UNAVAILABLE, Missing.PENDING
Value = str | int | float | bool | Missing | None  # None is unavailable
Acquire = Callable[[Json], Value]
Collect = Callable[[list[str]], Mapping[str, Value] | None]


class Sessions(Wire):
    """The calls that any key may make."""

    # Sessions from beginning to end

    def run(self, model: str, acquire: Acquire, *, collect: Collect | None = None, **opening: Any) -> Json:
        """Open a session (`opening` is what `open` takes) and go on until it is over; gives the session.

        `acquire` gets the question and gives a value, UNAVAILABLE (or None) or PENDING; text that was typed becomes a number where the
        question is numeric. When all that is wanted is pending, `collect` gets the names of what is and gives those that came, or None to
        wait no longer: then the session comes back as it stands, for `resume`.
        A program that names its own `idempotency_key` may crash and run again: it goes on where it was.
        """
        session = self.open(model, **opening)
        if opening.get("idempotency_key"):  # a repeated opening gets the first reply again, and the session may have come further
            session = self.session(session["id"])
        return self._drive(session, acquire, collect)

    def resume(self, session_id: str, acquire: Acquire, *, collect: Collect | None = None) -> Json:
        """Go on with a session that was left."""
        return self._drive(self.session(session_id), acquire, collect)

    def _drive(self, session: Json, acquire: Acquire, collect: Collect | None) -> Json:
        try:
            while session["status"] in ("open", "waiting"):
                brought = _gathered(session, acquire, collect)
                if brought is None:
                    return session
                session = self._bring(session["id"], brought)
            return session
        except Exception as error:
            if isinstance(error, ClientError):
                error.session_id = session["id"]
            error.add_note(f"session {session['id']} is kept: go on with client.resume")
            raise

    def _bring(self, session_id: str, brought: Mapping[str, Value]) -> Json:
        if not brought:  # nothing came in: the session may have expired meanwhile
            self._sleep(POLL)
            return self.session(session_id)
        try:
            return self.answer_all(session_id, brought)
        except Problem as problem:
            if problem.slug != "session-closed":
                raise
            return self.session(session_id)  # it expired, or somebody finished it

    # Sessions step by step

    def open(
        self,
        model: str,
        budget: float | None = None,
        known: Mapping[str, Any] | None = None,
        seed: int | None = None,
        confidence: float | None = None,
        reference: str | None = None,
        idempotency_key: str | None = None,
        *,
        aim: float | None = None,
    ) -> Json:
        """Open a session. `budget` is the most to spend on it; `aim` the mean cost over many sessions, by the model's operating points;
        `confidence` ends it as soon as the label is that probable.

        Under the same `idempotency_key` the same request gives the same session; by default the key is a new one."""
        body = given(model=model, budget=budget, known=known, seed=seed, aim=aim, confidence=confidence, reference=reference)
        return self._json("POST", "/v1/sessions", body, headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())})

    def answer(self, session_id: str, feature: str, value: Value) -> Json:
        """Bring a value, UNAVAILABLE or PENDING; gives the session again. Charged once, however often it is sent."""
        return self._json("POST", path_of("/v1/sessions", session_id, "answers"), _item(feature, value))

    def unavailable(self, session_id: str, feature: str) -> Json:
        """Say that a feature cannot be had."""
        return self.answer(session_id, feature, UNAVAILABLE)

    def pending(self, session_id: str, feature: str) -> Json:
        """Say that a feature is ordered: charged now, its value comes later."""
        return self.answer(session_id, feature, PENDING)

    def answer_all(self, session_id: str, answers: Mapping[str, Value] | Iterable[Mapping[str, Any]]) -> Json:
        """Several at once, all or nothing: features with values, or items as the wire has them."""
        items = [_item(*each) for each in answers.items()] if isinstance(answers, Mapping) else [dict(item) for item in answers]
        return self._json("POST", path_of("/v1/sessions", session_id, "answers"), {"answers": items})

    def session(self, session_id: str) -> Json:
        return self._json("GET", path_of("/v1/sessions", session_id))

    def sessions(self, status: str | None = None) -> Iterator[Json]:
        """Your own, newest first, page after page."""
        return self._pages("/v1/sessions", given(status=status))

    def finish(self, session_id: str) -> Json:
        """Predict now from what is known."""
        return self._json("POST", path_of("/v1/sessions", session_id, "finish"))

    def delete(self, session_id: str) -> None:
        """Delete a session with its answers."""
        self._delete(path_of("/v1/sessions", session_id))

    # Decisions with nothing kept

    def next(
        self,
        model: str,
        known: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
        budget: float | None = None,
        spent: float | None = None,
        seed: int | None = None,
        confidence: float | None = None,
        *,
        aim: float | None = None,
    ) -> Json:
        """The decision that a session with these answers would come to."""
        bought = list(answers) if answers is not None and not isinstance(answers, Mapping) else answers
        body = given(model=model, known=known, answers=bought, budget=budget, spent=spent, seed=seed, aim=aim, confidence=confidence)
        return self._json("POST", "/v1/next", body)

    def predict(
        self,
        model: str,
        rows: Iterable[Mapping[str, Any]],
        budget: float | None = None,
        confidence: float | None = None,
        *,
        aim: float | None = None,
    ) -> Json:
        """Label, probabilities, votes, cost and features bought of every row."""
        body = given(model=model, rows=[dict(row) for row in rows], budget=budget, aim=aim, confidence=confidence)
        return self._json("POST", "/v1/predict", body)


def _item(feature: str, value: Value) -> Json:
    if value is None or isinstance(value, Missing):
        return {"feature": feature, "status": (value or UNAVAILABLE).value}
    return {"feature": feature, "value": value}


def _gathered(session: Json, acquire: Acquire, collect: Collect | None) -> dict[str, Value] | None:
    """What is to be brought next; None where nobody waits for what is pending."""
    if asked := session["ask"]:
        return {asked["feature"]: as_asked(asked, acquire(asked))}
    pending = [answer["feature"] for answer in session["answers"] if answer.get("status") == "pending"]
    came = collect(pending) if collect else None
    return None if came is None else {name: value for name, value in came.items() if value is not PENDING}


def as_asked(question: Json, value: Value) -> Value:
    """Typed text as the question wants it; what does not fit is left to the server, which says what it expects.

    >>> as_asked({"kind": "numeric", "categories": None}, " 63 ")
    63.0
    >>> as_asked({"kind": "categorical", "categories": [1, 2, "none"]}, "2")
    2
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if question["kind"] == "numeric":
        with suppress(ValueError):
            return float(text) if math.isfinite(float(text)) else value
        return value
    for category in question["categories"] or ():
        if text == category or (not isinstance(category, str) and text == json.dumps(category)):
            return category  # type: ignore[no-any-return]
    return value
