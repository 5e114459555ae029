"""The wire to one server: sending, sending again, pages, and what the server says when it says no."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from frugal.service.address import without_secrets
from frugal.service.client.problems import ClientError, Json, Problem, Unreachable

LOCAL = "http://127.0.0.1:8000"
AGAIN = (429, 502, 503, 504)
LONGEST = 30.0  # seconds to wait before sending again; a server that asks for more is told of as a problem
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
NEVER = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)  # the same request will fail the same way
PREFIX = "urn:frugal:problem:"


class Wire:
    """One server, with one key. What can be sent twice without harm is sent again when a reply is lost."""

    def __init__(self, url: str = LOCAL, key: str | None = None, *, attempts: int = 5, timeout: float = 30.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"the server's address is {without_secrets(url)!r}: expected http://HOST:PORT or https://HOST")
        key = (key or "").strip()
        if not (key.isascii() and all(character.isprintable() and character != " " for character in key)):
            raise ValueError("the key has characters that no key has: copy it again")
        self.url, self.attempts = url.rstrip("/"), max(1, attempts)
        self._sleep = time.sleep
        try:
            self._http = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"} if key else None, timeout=timeout)
        except httpx.InvalidURL as error:
            raise ValueError(f"the server's address is {without_secrets(url)!r}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

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
        check(reply)

    def _json(self, method: str, path: str, body: Json | None = None, *, repeat: bool = True, **more: Any) -> Json:
        if body is not None:
            more["content"] = json.dumps(body, allow_nan=False, default=plain).encode()
            more["headers"] = {"Content-Type": "application/json", **more.get("headers", {})}
        reply, _ = self._send(method, path, repeat, **more)
        check(reply)
        found = read_json(reply)
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
                wait = backoff(attempt)
            else:
                asked = retry_after(reply)
                if last or not repeat or reply.status_code not in AGAIN or (asked or 0) > LONGEST:
                    return reply, maybe_done
                maybe_done = maybe_done or reply.status_code >= 500
                wait = backoff(attempt) if asked is None else asked + random.uniform(0, 0.1)
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def _unanswered(url: str, error: Exception, sent: bool, repeat: bool) -> str:
    why = str(error) or type(error).__name__
    if sent and not repeat:
        return f"{url} did not answer ({why}), and may have done it: look before you send it again"
    return f"{url} did not answer: {why}"


def backoff(attempt: int) -> float:
    """Twice as long each time, from a fifth of a second, and not the same for any two clients."""
    return float(min(LONGEST, 0.2 * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0))


def retry_after(reply: httpx.Response) -> float | None:
    """What the server asks to wait, in seconds, whether it says so in seconds or as a time."""
    text = reply.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def check(reply: httpx.Response) -> None:
    if reply.is_success:
        return
    body = read_json(reply) or {}
    slug = str(body.get("type", "")).removeprefix(PREFIX)
    detail = str(body.get("detail") or f"the server answered {reply.status_code} {reply.reason_phrase}")
    raise Problem(reply.status_code, slug, detail, body, retry_after(reply))


def read_json(reply: httpx.Response) -> Json | None:
    try:
        found = reply.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def path_of(root: str, *parts: str | int) -> str:
    for part in parts:
        if str(part) in ("", ".", ".."):
            raise ValueError(f"{str(part)!r} is no id and no name")
    return "/".join([root, *(quote(str(part), safe="") for part in parts)])


def given(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def plain(value: Any) -> Any:
    """numpy's numbers, without numpy; mappings of any kind."""
    if isinstance(value, Mapping):
        return dict(value)
    if callable(item := getattr(value, "item", None)):
        return item()
    raise TypeError(f"{value!r} cannot be sent: expected a number, text, true, false or null")
