"""Who may call a route, and what a route needs of the running app."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Depends, Request

from service.config import Settings, is_loopback
from service.errors import Forbidden, ForeignRequest, TooManyRequests, Unauthorized
from service.owners.keys import Role
from service.owners.lookup import Keys
from service.registry.cache import Versions
from service.sessions.steps import Steps
from service.store.audit import Actor
from service.store.db import Database

FORWARDED = frozenset((b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"))


@dataclass(frozen=True, slots=True)
class Person:
    """Whose sessions these are, by which key (none in open mode), and what that may do."""

    owner: str
    role: Role
    key_id: UUID | None
    request_id: str

    @property
    def actor(self) -> Actor:
        return Actor(self.owner, self.key_id, self.request_id)


async def identify(request: Request, role: Role) -> Person:
    """The caller, if it may call a route of this role. Comes before the body is read."""
    keys: Keys = request.app.state.keys
    given = request.headers.get("authorization")
    request_id: str = request.scope["request_id"]
    if given is None:
        if await keys.any():
            raise Unauthorized("Send your key: Authorization: Bearer frgl_...")
        check_local(request)
        return Person("local", "admin", None, request_id)
    scheme, _, key = given.partition(" ")
    found = await keys.find(key.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        raise Unauthorized("This key is unknown, revoked or expired; it is sent as Authorization: Bearer frgl_...")
    if role == "admin" and found.role != "admin":
        raise Forbidden("This is a client's key: the route needs an admin's.")
    if not request.app.state.rates.allows(found.id):
        raise TooManyRequests("This key sends more requests per second than it may: wait, and send the same again.")
    return Person(found.owner, found.role, found.id, request_id)


def check_local(request: Request) -> None:
    """Open mode serves this machine alone: a page in a browser that rebinds its name, or a proxy in front, is somebody else."""
    given = request.headers.get("host", "")
    host = given[1:].partition("]")[0] if given.startswith("[") else given.partition(":")[0]
    if not is_loopback(host):
        raise ForeignRequest("This server has no keys, so it answers to localhost only, by that name. Make a key: frugal keys create.")
    origin = urlsplit(request.headers.get("origin", "")).hostname
    if (
        request.headers.get("sec-fetch-site") == "cross-site"
        or (origin is not None and not is_loopback(origin))
        or (request.headers.get("origin") == "null")
    ):
        raise ForeignRequest("This server has no keys, so it takes nothing from other sites' pages. Make a key: frugal keys create.")
    if any(name in FORWARDED for name, _ in request.scope["headers"]):
        raise ForeignRequest("This server has no keys, so it takes no forwarded requests. Make a key: frugal keys create.")


async def _caller(request: Request) -> Person:
    return request.scope["caller"]  # type: ignore[no-any-return]


async def _steps(request: Request) -> Steps:
    return request.app.state.steps  # type: ignore[no-any-return]


async def _versions(request: Request) -> Versions:
    return request.app.state.versions  # type: ignore[no-any-return]


async def _keys(request: Request) -> Keys:
    return request.app.state.keys  # type: ignore[no-any-return]


async def _database(request: Request) -> Database:
    return request.app.state.database  # type: ignore[no-any-return]


async def _settings(request: Request) -> Settings:
    return request.app.state.settings  # type: ignore[no-any-return]


Caller = Annotated[Person, Depends(_caller)]
TheSteps = Annotated[Steps, Depends(_steps)]
TheVersions = Annotated[Versions, Depends(_versions)]
TheKeys = Annotated[Keys, Depends(_keys)]
TheDatabase = Annotated[Database, Depends(_database)]
TheSettings = Annotated[Settings, Depends(_settings)]
