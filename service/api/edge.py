"""The outermost layer: every request has an id, is counted and logged, and gets an answer whatever happens inside."""

import logging
import re
import time
from random import getrandbits
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from frugal.service import metrics
from frugal.service.api.paging import parse_id
from frugal.service.api.problems import respond
from frugal.service.errors import Internal

WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,64}")
METHODS = {"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"}
log = logging.getLogger("frugal")


class Edge:
    """The id is the client's own X-Request-ID where it is well-formed, else a new one; it goes back in that header and in problems.

    What nobody expected is logged and told as a 500 here: left to uvicorn, the connection would close under the client's next request.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._clocks: dict[tuple[str, str], Any] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        id = given if WELL_FORMED.fullmatch(given) else b"%032x" % getrandbits(128)  # need not be secret
        scope["request_id"] = id.decode()
        status = 0

        async def send_with_id(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", id)]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = 499  # it left while it was sending: nobody is there to be told
        except Exception:
            log.exception("request failed", extra={"fields": {"request_id": scope["request_id"]}})
            if status:
                raise
            told = Internal("Something is wrong with the service; its log has the details under this request_id.")
            await respond(told, Request(scope))(scope, receive, send_with_id)
        finally:
            self._record(scope, status, time.perf_counter() - begun)

    def _record(self, scope: Any, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unmatched")
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        counter, clock = self._counters.get((method, route, status)), self._clocks.get((method, route))
        if counter is None or clock is None:
            counter = self._counters[method, route, status] = metrics.requests.labels(method, route, status)
            clock = self._clocks[method, route] = metrics.seconds.labels(method, route)
        counter.inc()
        clock.observe(seconds)
        if log.isEnabledFor(logging.INFO):
            scope["app"].state.lines.add(_fields(scope, method, route, status, seconds))


def _fields(scope: Any, method: str, route: str, status: int, seconds: float) -> dict[str, Any]:
    fields = {"request_id": scope["request_id"], "method": method, "route": route, "status": status, "ms": round(1000 * seconds, 2)}
    caller = scope.get("caller")
    if caller is not None:
        fields["owner"] = caller.owner
        if caller.key_id is not None:
            fields["key_id"] = str(caller.key_id)
    if route.startswith("/v1/sessions/{id}") and (id := parse_id(scope["path_params"]["id"])):
        fields["session"] = str(id)  # what is no id may be anything, a key too
    return fields
