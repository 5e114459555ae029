"""The OpenAPI page: written once from the routes, with what FastAPI does not know of them."""

from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic_core import to_json

from frugal.service.api import problems
from frugal.service.api.bodies import OpenRoute
from frugal.service.api.sharing import Shared

BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "frgl_...",
    "description": "An API key. A server on loopback that has no keys yet is open to this machine, and takes requests without one.",
}


def page(app: FastAPI) -> dict[str, Any]:
    """The page: operations named by their functions, one problem, and who may call what."""
    made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes, separate_input_output_schemas=False)
    made["components"]["schemas"]["Problem"] = problems.SCHEMA
    made["components"]["securitySchemes"] = {"key": BEARER}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                operation = made["paths"][route.path_format][method.lower()]
                operation["operationId"] = route.name
                operation["security"] = [] if isinstance(route, OpenRoute) else [{"key": []}]
    return made


def describe_itself(app: FastAPI) -> None:
    """/openapi.json from bytes that are kept: FastAPI writes it anew for every request, 7 ms that anybody could ask for at will."""
    app.openapi = cache(lambda: page(app))  # type: ignore[method-assign]
    written = Shared(lambda: to_json(app.openapi()), for_ever=True)

    async def openapi(request: Request) -> Response:
        return Response(await written.read(), media_type="application/json")

    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != app.openapi_url]
    app.add_route(str(app.openapi_url), openapi, include_in_schema=False)
