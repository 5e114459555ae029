"""A client in Python: sessions, decisions, models and the admin's calls. Needs httpx alone; docs/client.md has it by task.

ClientError
|-- Problem            the server said no: status, slug, detail and the whole body
`-- Unreachable        no answer came; `sent` says whether the request may have been done all the same
"""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

LOCAL = "http://127.0.0.1:8000"
AGAIN = (429, 502, 503, 504)
LONGEST = 30.0  # seconds to wait before sending again; a server that asks for more is told of as a problem
POLL = 1.0  # seconds between two looks at a session of which nothing has come in
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
NEVER = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)  # the same request will fail the same way
PREFIX = "urn:frugal:problem:"


class Missing(Enum):
    """What `acquire` gives for a feature that has no value, or none yet."""

    UNAVAILABLE = "unavailable"
    PENDING = "pending"


UNAVAILABLE, PENDING = Missing.UNAVAILABLE, Missing.PENDING
Json = dict[str, Any]
Value = str | int | float | bool | Missing | None  # None is unavailable
Acquire = Callable[[Json], Value]
Collect = Callable[[list[str]], Mapping[str, Value] | None]


class ClientError(Exception):
    """Whatever keeps a call from its answer. `session_id` is the session that `run` had open, to go on with `resume`."""

    session_id: str | None = None


class Problem(ClientError):  # noqa: N818 - what the server calls it
    """The server's own words: `slug` is the end of the problem's type, `body` all of it."""

    def __init__(self, status: int, slug: str, detail: str, body: Json, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.slug, self.detail, self.body, self.retry_after = status, slug, detail, body, retry_after


class Unreachable(ClientError):  # noqa: N818 - a state, like the above
    """No answer, after as many attempts as the client makes."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Client:
    """Calls of one server, with one key. What can be sent twice without harm is sent again when a reply is lost.

    >>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     session = client.run("heart", lambda question: input(question["question"]), budget=60)
    ...     print(session["prediction"]["label"], session["spent"])
    """

    def __init__(self, url: str = LOCAL, key: str | None = None, *, attempts: int = 5, timeout: float = 30.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the server's address is {url!r}: expected http://HOST:PORT or https://HOST")
        key = (key or "").strip()
        if not (key.isascii() and all(character.isprintable() and character != " " for character in key)):
            raise ValueError("the key has characters that no key has: copy it again")
        self.url, self.attempts = url.rstrip("/"), max(1, attempts)
        self._sleep = time.sleep
        try:
            self._http = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"} if key else None, timeout=timeout)
        except httpx.InvalidURL as error:
            raise ValueError(f"the server's address is {url!r}: {error}") from None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # Sessions from beginning to end

    def run(self, model: str, acquire: Acquire, *, collect: Collect | None = None, **opening: Any) -> Json:
        """Open a session (`opening` is what `open` takes) and go on until it is over; gives the session.

        `acquire` gets the question and gives a value, UNAVAILABLE (or None) or PENDING. When all that is wanted is pending, `collect` gets
        the names of what is and gives those that came, or None to wait no longer: then the session comes back as it stands, for `resume`.
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
                given = _gathered(session, acquire, collect)
                if given is None:
                    return session
                session = self._bring(session["id"], given)
            return session
        except Exception as error:
            if isinstance(error, ClientError):
                error.session_id = session["id"]
            error.add_note(f"session {session['id']} is kept: go on with client.resume")
            raise

    def _bring(self, session_id: str, given: Mapping[str, Value]) -> Json:
        if not given:  # nothing came in: the session may have expired meanwhile
            self._sleep(POLL)
            return self.session(session_id)
        try:
            return self.answer_all(session_id, given)
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
    ) -> Json:
        """Open a session. Under the same `idempotency_key` the same request gives the same session; by default the key is a new one."""
        body = _given(model=model, budget=budget, known=known, seed=seed, confidence=confidence, reference=reference)
        return self._json("POST", "/v1/sessions", body, headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())})

    def answer(self, session_id: str, feature: str, value: Value) -> Json:
        """Bring a value, UNAVAILABLE or PENDING; gives the session again. Charged once, however often it is sent."""
        return self._json("POST", _path("/v1/sessions", session_id, "answers"), _item(feature, value))

    def unavailable(self, session_id: str, feature: str) -> Json:
        """Say that a feature cannot be had."""
        return self.answer(session_id, feature, UNAVAILABLE)

    def pending(self, session_id: str, feature: str) -> Json:
        """Say that a feature is ordered: charged now, its value comes later."""
        return self.answer(session_id, feature, PENDING)

    def answer_all(self, session_id: str, answers: Mapping[str, Value] | Iterable[Mapping[str, Any]]) -> Json:
        """Several at once, all or nothing: features with values, or items as the wire has them."""
        items = [_item(*each) for each in answers.items()] if isinstance(answers, Mapping) else [dict(item) for item in answers]
        return self._json("POST", _path("/v1/sessions", session_id, "answers"), {"answers": items})

    def session(self, session_id: str) -> Json:
        return self._json("GET", _path("/v1/sessions", session_id))

    def sessions(self, status: str | None = None) -> Iterator[Json]:
        """Your own, newest first, page after page."""
        return self._pages("/v1/sessions", _given(status=status))

    def finish(self, session_id: str) -> Json:
        """Predict now from what is known."""
        return self._json("POST", _path("/v1/sessions", session_id, "finish"))

    def delete(self, session_id: str) -> None:
        """Delete a session with its answers."""
        self._delete(_path("/v1/sessions", session_id))

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
    ) -> Json:
        """The decision that a session with these answers would come to."""
        bought = list(answers) if answers is not None and not isinstance(answers, Mapping) else answers
        body = _given(model=model, known=known, answers=bought, budget=budget, spent=spent, seed=seed, confidence=confidence)
        return self._json("POST", "/v1/next", body)

    def predict(self, model: str, rows: Iterable[Mapping[str, Any]], budget: float | None = None, confidence: float | None = None) -> Json:
        """Label, probabilities, cost and features bought of every row."""
        return self._json(
            "POST", "/v1/predict", _given(model=model, rows=[dict(row) for row in rows], budget=budget, confidence=confidence)
        )

    # Models

    def models(self) -> Iterator[Json]:
        """Names in alphabetical order, each with its versions and aliases."""
        return self._pages("/v1/models")

    def model(self, name: str) -> Json:
        return self._json("GET", _path("/v1/models", name))

    def version(self, name: str, number: int) -> Json:
        """Schema, costs, metrics and curve of a version."""
        return self._json("GET", _path("/v1/models", name, "versions", number))

    # For admins

    def publish(self, name: str, archive: bytes | str | PathLike[str], alias: str | None = None) -> Json:
        """Publish a model file, by its path or its bytes, as the next version of a name. Sent once: twice would be two versions."""
        data = archive if isinstance(archive, bytes) else Path(archive).read_bytes()
        headers = {"Content-Type": "application/octet-stream"}
        return self._json("POST", "/v1/admin/models", params=_given(name=name, alias=alias), content=data, headers=headers, repeat=False)

    def set_alias(self, name: str, alias: str, version: int) -> Json:
        """Let an alias stand for a version; gives the model."""
        return self._json("PUT", _path("/v1/admin/models", name, "aliases", alias), {"version": version})

    def drop_alias(self, name: str, alias: str) -> None:
        self._delete(_path("/v1/admin/models", name, "aliases", alias))

    def retire(self, name: str, number: int) -> Json:
        """Take a version out of what the bare name means; gives the version."""
        return self._json("POST", _path("/v1/admin/models", name, "versions", number, "retire"))

    def create_key(self, owner: str, role: str = "client", expires_at: datetime | str | None = None) -> Json:
        """Make a key; `key` of the reply is the key itself, shown here and never again. Sent once: twice would be two keys."""
        until = expires_at.isoformat() if isinstance(expires_at, datetime) else expires_at
        return self._json("POST", "/v1/admin/keys", _given(owner=owner, role=role, expires_at=until), repeat=False)

    def keys(self) -> Iterator[Json]:
        """All keys in the order they were made, without what they are."""
        return self._pages("/v1/admin/keys")

    def revoke_key(self, id: str) -> None:
        """Let a key count no more, from at most five seconds on."""
        self._delete(_path("/v1/admin/keys", id))

    def audit(self) -> Iterator[Json]:
        """Who published, moved, retired, revoked and deleted, newest first."""
        return self._pages("/v1/admin/audit")

    # The wire

    def _pages(self, path: str, params: Json | None = None) -> Iterator[Json]:
        asked = {"limit": 100, **(params or {})}
        while True:
            page = self._json("GET", path, params=asked)
            yield from page["items"]
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def _delete(self, path: str) -> None:
        reply, done_before = self._send("DELETE", path, True)
        if reply.status_code == 404 and done_before:
            return  # the reply that said so was lost
        _check(reply)

    def _json(self, method: str, path: str, body: Json | None = None, *, repeat: bool = True, **more: Any) -> Json:
        if body is not None:
            more["content"] = json.dumps(body, allow_nan=False, default=_plain).encode()
            more["headers"] = {"Content-Type": "application/json", **more.get("headers", {})}
        reply, _ = self._send(method, path, repeat, **more)
        _check(reply)
        found = _read(reply)
        if found is None:
            raise ClientError(f"{self.url} answers, but not as a Frugal server does: check the address")
        return found

    def _send(self, method: str, path: str, repeat: bool, **more: Any) -> tuple[httpx.Response, bool]:
        """The last reply, and whether an earlier request may have been done. Without `repeat` it goes again only if it never left."""
        maybe_done = False
        for attempt in range(1, self.attempts + 1):
            last = attempt == self.attempts
            try:
                reply = self._http.request(method, path, **more)
            except NEVER as error:
                raise ValueError(f"{method} {self.url}{path} cannot be sent: {error}") from None
            except httpx.RequestError as error:
                sent = not isinstance(error, NOT_SENT)
                maybe_done = maybe_done or sent
                if last or (sent and not repeat):
                    raise Unreachable(_unanswered(self.url, error, sent, repeat), maybe_done) from error
                wait = _backoff(attempt)
            else:
                asked = _retry_after(reply)
                if last or not repeat or reply.status_code not in AGAIN or (asked or 0) > LONGEST:
                    return reply, maybe_done
                maybe_done = maybe_done or reply.status_code >= 500
                wait = _backoff(attempt) if asked is None else asked + random.uniform(0, 0.1)
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def _unanswered(url: str, error: Exception, sent: bool, repeat: bool) -> str:
    why = str(error) or type(error).__name__
    if sent and not repeat:
        return f"{url} did not answer ({why}), and may have done it: look before you send it again"
    return f"{url} did not answer: {why}"


def _backoff(attempt: int) -> float:
    """Twice as long each time, from a fifth of a second, and not the same for any two clients."""
    return float(min(LONGEST, 0.2 * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0))


def _retry_after(reply: httpx.Response) -> float | None:
    """What the server asks to wait, in seconds, whether it says so in seconds or as a time."""
    text = reply.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _check(reply: httpx.Response) -> None:
    if reply.is_success:
        return
    body = _read(reply) or {}
    slug = str(body.get("type", "")).removeprefix(PREFIX)
    detail = str(body.get("detail") or f"the server answered {reply.status_code} {reply.reason_phrase}")
    raise Problem(reply.status_code, slug, detail, body, _retry_after(reply))


def _read(reply: httpx.Response) -> Json | None:
    try:
        found = reply.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _path(root: str, *parts: str | int) -> str:
    for part in parts:
        if str(part) in ("", ".", ".."):
            raise ValueError(f"{str(part)!r} is no id and no name")
    return "/".join([root, *(quote(str(part), safe="") for part in parts)])


def _given(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _item(feature: str, value: Value) -> Json:
    if value is None or isinstance(value, Missing):
        return {"feature": feature, "status": (value or UNAVAILABLE).value}
    return {"feature": feature, "value": value}


def _gathered(session: Json, acquire: Acquire, collect: Collect | None) -> dict[str, Value] | None:
    """What is to be brought next; None where nobody waits for what is pending."""
    if asked := session["ask"]:
        return {asked["feature"]: acquire(asked)}
    pending = [answer["feature"] for answer in session["answers"] if answer.get("status") == "pending"]
    came = collect(pending) if collect else None
    return None if came is None else {name: value for name, value in came.items() if value is not PENDING}


def _plain(value: Any) -> Any:
    """numpy's numbers, without numpy; mappings of any kind."""
    if isinstance(value, Mapping):
        return dict(value)
    if callable(item := getattr(value, "item", None)):
        return item()
    raise TypeError(f"{value!r} cannot be sent: expected a number, text, true, false or null")
