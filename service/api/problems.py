"""Errors as RFC 9457 problem+json, everywhere: the service's own, FastAPI's, wrong routes and methods."""

import json
import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from frugal.service.api.shapes import Strict
from frugal.service.errors import (
    Busy,
    DatabaseAway,
    ForeignRequest,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Problem,
    RequestTimeout,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)

PREFIX = "urn:frugal:problem:"
CONTENT_TYPE = "application/problem+json"
log = logging.getLogger("frugal")


def install(app: FastAPI) -> None:
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_exception_handler(HTTPException, _http)


def respond(problem: Problem, request: Request, headers: Mapping[str, str] | None = None) -> Response:
    given = dict(headers or {})
    if problem.status == 401:
        given["WWW-Authenticate"] = 'Bearer realm="frugal"'
    if problem.retry_after is not None:
        given["Retry-After"] = str(problem.retry_after)
    body = json.dumps(members(problem, request.scope.get("request_id")))
    return Response(body, problem.status, given, media_type=CONTENT_TYPE)


def members(problem: Problem, request_id: str | None) -> dict[str, Any]:
    """What a problem says, as JSON has it."""
    return problem.more | {
        "type": PREFIX + problem.slug,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "request_id": request_id,
    }


def documented(*problems: type[Problem]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route that can give these."""
    found: dict[int | str, dict[str, Any]] = {}
    for problem in problems:
        entry = found.setdefault(problem.status, {"content": {CONTENT_TYPE: {"schema": REFERRED}}, "description": ""})
        entry["description"] = "; ".join(filter(None, [entry["description"], f"{problem.slug}: {problem.title}"]))
    return found


def always(*more: type[Problem]) -> dict[int | str, dict[str, Any]]:
    """What every route for callers with keys can give."""
    return documented(Unauthorized, ForeignRequest, InvalidRequest, TooManyRequests, Internal, Busy, DatabaseAway, *more)


BODY = (RequestTimeout, TooLarge, UnsupportedMediaType, InvalidRequest)  # what every route that takes a body can give
SCHEMA = {
    "title": "Problem",
    "description": "What went wrong, as RFC 9457 has it: branch on `type`, show `detail`. Some problems have more members.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"type": "string", "examples": [PREFIX + "over-budget"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request_id": {"type": ["string", "null"]},
    },
}
REFERRED = {"$ref": "#/components/schemas/Problem"}


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    if error.__cause__ is not None and error.status >= 500:
        log.warning("%s: %s", error.slug, type(error.__cause__).__qualname__)
    return respond(error, request)


async def _misshapen(request: Request, error: Exception) -> Response:
    """What is wrong and where, never the input itself."""
    assert isinstance(error, RequestValidationError)
    faults = [{"where": _where(fault["loc"], error.body), "what": _what(fault)} for fault in error.errors()[:20]]
    first = faults[0]
    return respond(InvalidRequest(f"{first['where']}: {first['what']}" if first["where"] else first["what"], errors=faults), request)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return respond(MethodNotAllowed("This route takes other methods: the header Allow names them."), request, error.headers)
    if error.status_code == 404:
        return respond(NotFound("There is no such route: see /docs for those there are."), request, error.headers)
    return respond(InvalidRequest(str(error.detail)), request, error.headers)


def _where(place: tuple[int | str, ...], body: Any) -> str:
    """The field's path; not whether it came in the body or the query, nor which of several shapes it was held against. A name that the
    client chose is told by its place: known.#3 is the third field of `known`."""
    path: list[str] = []
    for part in place[1:]:
        if str(part).startswith("<") or part == "[key]":
            continue
        ours = isinstance(part, int) or part in names_of_fields() or (place[0] != "body" and not path)
        path.append(str(part) if ours else f"#{_position(body, part)}")
        body = _inside(body, part)
    return ".".join(path)


def _position(body: Any, name: str | int) -> int | str:
    """Which field of an object this is, from 1."""
    return list(body).index(name) + 1 if isinstance(body, dict) and name in body else "?"


def _inside(body: Any, part: str | int) -> Any:
    try:
        return body[part]
    except (KeyError, IndexError, TypeError):
        return body  # the name of a parameter, whose value this is


@cache
def names_of_fields() -> frozenset[str]:
    """The names of all fields of all bodies: ours, and no secret."""
    kinds = [Strict]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return frozenset(name for kind in kinds for name in kind.model_fields)


def _what(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        return "there is no such field"
    if fault["type"] == "missing" and fault["loc"] == ("body",):
        return "a JSON body is required"
    if fault["type"] in ("model_attributes_type", "model_type", "dict_type"):
        return "expected an object"
    if fault["type"] == "too_long" and isinstance(fault.get("input"), str):
        return f"expected at most {fault['ctx']['max_length']} characters"
    return str(fault["msg"]).removeprefix("Value error, ")
