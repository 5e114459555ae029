"""Request bodies: read within a limit, parsed as strict JSON, before FastAPI validates their shape."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NoReturn, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from frugal.service.api.access import identify
from frugal.service.config import BYTES_PER_SECOND, Settings
from frugal.service.errors import InvalidRequest, RequestTimeout, TooLarge, UnsupportedMediaType
from frugal.service.owners.issuing import Role
from frugal.service.store.threads import compute

IN_THREAD = 65_536  # bytes of a body from which parsing takes longer than the way to a thread


class ClientRoute(APIRoute):
    """A route for whoever has a key. First the caller is known; then its body is read, as JSON that RFC 8259 would have: no NaN, no name
    twice, and no more bytes than the settings allow."""

    role: Role = "client"
    limit = "max_body"
    longest = "max_fields"  # of the arrays in it

    async def parsed(self, request: Request, raw: bytes) -> Any:
        """The body as JSON; a large one in a thread, so that others are served meanwhile."""
        if not raw:
            return None
        settings = request.app.state.settings
        if len(raw) > IN_THREAD:
            return await compute(parse, raw, settings, getattr(settings, self.longest))
        return parse(raw, settings, getattr(settings, self.longest))

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        has_body = self.body_field is not None
        known = [field.alias for field in self.dependant.query_params]

        async def strict(request: Request) -> Response:
            request.scope["caller"] = await identify(request, self.role)
            check_query(request, known)
            if not has_body:
                return await handle(request)
            raw = await read_body(request, getattr(request.app.state.settings, self.limit))
            if raw:
                check_json_type(request)
            return await handle(ReadRequest(request, raw, await self.parsed(request, raw)))

        return strict


class LargeRoute(ClientRoute):
    """The same for bodies that hold many rows."""

    limit = "max_upload"
    longest = "max_rows"


class StepRoute(ClientRoute):
    """The route of an answer, called without FastAPI's own parsing and its solver of dependencies, which took as long as the database did.

    What it documents is the same, and so is what it refuses.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        shape: TypeAdapter[Any] = TypeAdapter(get_type_hints(self.endpoint, include_extras=True)["body"])

        async def step(request: Request) -> Response:
            caller = await identify(request, self.role)
            check_query(request, [])
            raw = await read_body(request, request.app.state.settings.max_body)
            if raw:
                check_json_type(request)
            sent = await self.parsed(request, raw)
            try:
                body = shape.validate_python(sent)
            except ValidationError as error:
                faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False, include_input=False)]
                raise RequestValidationError(faults, body=sent) from None
            reply: Response = await self.endpoint(request.path_params["id"], body, caller, request.app.state.steps)
            return reply

        return step


class AdminRoute(ClientRoute):
    """A route for admins."""

    role = "admin"


class OpenRoute(APIRoute):
    """A route for anybody: what says whether the service lives."""


def check_query(request: Request, known: list[str]) -> None:
    """A parameter that is misspelt would be missed in silence, and with it the column that was to be left out."""
    if request.scope["query_string"] and any(name not in known for name in request.query_params):
        takes = f"takes {', '.join(known)}" if known else "takes none"
        raise InvalidRequest(f"The address has a parameter that this route does not know: it {takes}.", allowed=known)


class ReadRequest(Request):
    """A request whose body has been read and parsed."""

    def __init__(self, request: Request, raw: bytes, parsed: Any) -> None:
        super().__init__(request.scope, request.receive)
        self.raw, self.parsed = raw, parsed

    async def body(self) -> bytes:
        return self.raw

    async def json(self) -> Any:
        return self.parsed


async def read_body(request: Request, limit: int) -> bytes:
    """All of a body; TooLarge as soon as it is known to be longer than `limit`."""
    return b"".join([part async for part in stream_body(request, limit)])


async def stream_body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """A body as it arrives; TooLarge as soon as it is known to be longer than `limit`, RequestTimeout when it comes too slowly.

    A client has `body_timeout` seconds of our waiting, and earns more of them by what it sends. What is done with the body takes none.
    """
    announced, size = request.headers.get("content-length", ""), 0
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    patience = most = request.app.state.settings.body_timeout
    clock = asyncio.get_running_loop().time
    parts = aiter(request.stream())
    while True:
        asked = clock()
        try:
            async with asyncio.timeout(patience):
                part = await anext(parts)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _too_slow(most) from None
        patience = min(most, patience - (clock() - asked) + len(part) / BYTES_PER_SECOND)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        yield part


def check_json_type(request: Request) -> None:
    kind = request.headers.get("content-type", "")
    if kind != "application/json" and kind.partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("Send JSON, with the header Content-Type: application/json.")


def parse(raw: bytes, settings: Settings, longest: int) -> Any:
    """Strict JSON within the limits; InvalidRequest says what is wrong without repeating it."""
    try:
        parsed = DECODER.decode(raw.decode())
        check_limits(parsed, settings.max_depth, settings.max_fields, longest)
        return parsed
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not UTF-8: byte {error.start} is wrong.") from None
    except RecursionError:
        raise InvalidRequest("The body is nested too deeply.") from None
    except ValueError as error:  # a number of thousands of digits
        raise InvalidRequest(f"The body is not JSON that can be read: {str(error).split(';')[0]}.") from None


def check_limits(parsed: Any, depth: int, fields: int, longest: int) -> None:
    """No deeper than `depth`, no object with more than so many fields, no array longer than that; looked at level by level."""
    level = [parsed] if isinstance(parsed, (dict, list)) else []
    for _ in range(depth):
        if not level:
            return
        if any(len(item) > fields for item in level if item.__class__ is dict):
            raise InvalidRequest(f"An object has more than {fields:,} fields.", limit=fields)
        if any(len(item) > longest for item in level if item.__class__ is list):
            raise InvalidRequest(f"An array has more than {longest:,} items.", limit=longest)
        level = [
            child for item in level for child in (item.values() if item.__class__ is dict else item) if child.__class__ in (dict, list)
        ]
    if level:
        raise InvalidRequest(f"The body is nested more than {depth} levels deep.", limit=depth)


def _refuse(constant: str) -> NoReturn:
    raise InvalidRequest(f"{constant} is not a number in JSON.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidRequest("An object has the same name twice.")
    return found


def _too_slow(seconds: float) -> RequestTimeout:
    return RequestTimeout(
        f"The body stopped for {seconds:g} seconds, or came at less than {BYTES_PER_SECOND:,} bytes a second: send it again."
    )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is longer than {limit:,} bytes.", limit=limit)


DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_unique)
