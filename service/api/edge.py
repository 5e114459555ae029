"""The outermost layer: every request has an id, and gets an answer whatever happens inside."""

import logging
import re
from typing import Any

from fastapi import Request

from service.api.problems import respond
from service.errors import Internal
from service.store.ids import new_id

WELL_FORMED = re.compile(rb"[A-Za-z0-9._-]{1,64}")
log = logging.getLogger("frugal")


class Edge:
    """The id is the client's own X-Request-ID where it is well-formed, else a new one; it goes back in that header and in problems.

    What nobody expected is logged and told as a 500 here: left to uvicorn, the connection would close under the client's next request.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        id = given if WELL_FORMED.fullmatch(given) else str(new_id()).encode()
        scope["request_id"] = id.decode()
        started = False

        async def send_with_id(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (b"x-request-id", id)]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception:
            log.exception("request %s failed", scope["request_id"])
            if started:
                raise
            told = Internal("Something is wrong with the service; its log has the details under this request_id.")
            await respond(told, Request(scope))(scope, receive, send_with_id)
