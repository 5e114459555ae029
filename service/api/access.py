"""Who may call a route, and what a route needs of the running app."""

import re
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from frugal.service.config import Settings, is_loopback
from frugal.service.errors import Forbidden, ForeignRequest, TooManyRequests, Unauthorized
from frugal.service.owners.issuing import Role
from frugal.service.owners.lookup import Keys
from frugal.service.registry.cache import Versions
from frugal.service.sessions.steps import Steps
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database

HOST = re.compile(r"(?P<name>localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:]{2,39}\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
# What proxies, load balancers and content networks add to what they pass on.
FORWARDING = frozenset(
    b"""via cdn-loop client-ip true-client-ip x-client-ip x-cluster-client-ip x-appengine-user-ip x-proxyuser-ip x-host x-scheme
    x-url-scheme x-rewrite-url x-arr-log-id x-arr-ssl x-amzn-trace-id""".split()
)
FORWARDING_FAMILIES = tuple(
    b"""forwarded x-forwarded x-real- x-original- x-originating- x-remote- x-proxy- x-proxied- x-envoy- x-azure- cf- fastly- proxy-
    wl-proxy- front-end- tailscale- x-vercel- x-amz-cf- x-varnish x-bluecoat- x-nginx- x-sucuri- max-forwards""".split()
)
FORWARDING_ENDS = (b"-client-ip", b"-clientip", b"-connecting-ip", b"-real-ip")


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
    """Open mode serves this machine alone: a page in a browser that rebinds its name or lies on another port, or a proxy in front, is
    somebody else."""
    values: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"sec-fetch-site": []}
    for name, value in request.scope["headers"]:
        if name in values:
            values[name].append(value.decode("latin-1").lower())
        elif is_forwarding(name):
            raise ForeignRequest("This server has no keys, so it takes no forwarded requests. Make a key: frugal keys create.")
    hosts, origins, sites = values.values()
    if len(hosts) != 1 or not names_this_machine(hosts[0]):
        raise ForeignRequest("This server has no keys, so it answers to localhost only, by that name. Make a key: frugal keys create.")
    own = f"http://{hosts[0].removesuffix(':80')}"
    if any(origin.removesuffix(":80") != own for origin in origins) or any(site not in ("none", "same-origin") for site in sites):
        raise ForeignRequest("This server has no keys, so it takes nothing from other sites' pages. Make a key: frugal keys create.")


def names_this_machine(host: str) -> bool:
    """Whether a Host header is a loopback name or address with or without a port, and nothing else beside it.

    Examples
    --------
    >>> [names_this_machine(host) for host in ("localhost", "127.0.0.1:8000", "[::1]:8000")]
    [True, True, True]
    >>> [names_this_machine(host) for host in ("localhost.", "localhost:80@evil.example", "me@localhost", "127.0.0.1.evil.example")]
    [False, False, False, False]
    """
    found = HOST.fullmatch(host)
    return found is not None and is_loopback(found["name"].strip("[]")) and int(found["port"] or 1) in range(1, 65_536)


def is_forwarding(name: bytes) -> bool:
    """Whether a header says that somebody passes a request on: those names have no end, so whole families of them count."""
    plain = name.replace(b"_", b"-")
    return plain in FORWARDING or plain.startswith(FORWARDING_FAMILIES) or plain.endswith(FORWARDING_ENDS)


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
