"""What a route needs: who is calling, and the use cases of the running app."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from service.config import Settings
from service.registry.cache import Versions
from service.sessions.steps import Steps
from service.store.db import Database


@dataclass(frozen=True, slots=True)
class Person:
    """Whose sessions these are."""

    owner: str


LOCAL = Person("local")  # a server without keys listens on loopback only, and everybody there is one owner


async def _caller(request: Request) -> Person:
    return LOCAL


async def _steps(request: Request) -> Steps:
    return request.app.state.steps  # type: ignore[no-any-return]


async def _versions(request: Request) -> Versions:
    return request.app.state.versions  # type: ignore[no-any-return]


async def _database(request: Request) -> Database:
    return request.app.state.database  # type: ignore[no-any-return]


async def _settings(request: Request) -> Settings:
    return request.app.state.settings  # type: ignore[no-any-return]


Caller = Annotated[Person, Depends(_caller)]
Admin = Annotated[Person, Depends(_caller)]
TheSteps = Annotated[Steps, Depends(_steps)]
TheVersions = Annotated[Versions, Depends(_versions)]
TheDatabase = Annotated[Database, Depends(_database)]
TheSettings = Annotated[Settings, Depends(_settings)]
