"""`frugal keys`: on a server, or on its database before any server runs."""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

from frugal.service import errors
from frugal.service.client import LOCAL, Json
from frugal.service.commands.remote.connecting import as_command, connected, listed, said, when
from frugal.service.keyform import new_key

PAGE = 100


def new(options: argparse.Namespace) -> str:
    """A key for FRUGAL_ADMIN_KEY, which no database knows."""
    key = new_key()
    return json.dumps({"key": key}) if options.json else key


def create(options: argparse.Namespace) -> str:
    until = expiry(options.expires)
    with opened_keys(options) as keys:
        made = keys.create_key(options.owner, options.role, until)
    life = f"until {when(made['expires_at'])} UTC" if made["expires_at"] else "until it is revoked"
    about = f"This is the key of {made['owner']} ({made['role']}, {life}). It is shown this once: keep it now."
    return said(options, made, f"{made['key']}\n\n{about}\nTo revoke it: frugal keys revoke {made['id']}")


def listing(options: argparse.Namespace) -> str:
    with opened_keys(options) as keys:
        found = list(keys.keys())
    rows = [(k["id"], k["owner"], k["role"], when(k["created_at"]), when(k["expires_at"]), when(k["revoked_at"])) for k in found]
    empty = "no keys yet: make the first with frugal keys create --owner NAME --role admin"
    return listed(options, found, ("id", "owner", "role", "made", "expires", "revoked"), rows, empty)


def revoke(options: argparse.Namespace) -> str:
    with opened_keys(options) as keys:
        keys.revoke_key(options.id)
    return said(
        options, {"id": options.id, "revoked": True}, f"revoked {options.id}: a running server takes it for five seconds more at most"
    )


def expiry(text: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> datetime | None:
    """90d and 12h from now, or a time with its offset."""
    if text is None:
        return None
    try:
        if span := re.fullmatch(r"(\d+)([dh])", text):
            return now() + timedelta(**{{"d": "days", "h": "hours"}[span[2]]: int(span[1])})
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"--expires {text}: expected days (90d), hours (12h) or a time with its offset (2030-01-31T12:00:00Z)")


class Keys(Protocol):
    """Where keys are kept: a server (its client has these three), or a database."""

    def create_key(self, owner: str, role: Literal["client", "admin"], expires_at: datetime | None) -> Json: ...
    def keys(self) -> Iterable[Json]: ...
    def revoke_key(self, id: str) -> None: ...


@contextmanager
def opened_keys(options: argparse.Namespace) -> Iterator[Keys]:
    """The server's keys where one is named, else those of the database."""
    if options.url and options.database:
        raise ValueError("--url and --database: name the server or its database, not both")
    if options.url or (os.environ.get("FRUGAL_URL") and not options.database):
        with connected(options) as client:
            yield client
        return
    if options.key:
        raise ValueError("--key is for a server: say which with --url")
    with _database_keys(options.database) as keys:
        yield keys


@contextmanager
def _database_keys(url: str | None) -> Iterator[Keys]:
    from frugal.service.config import from_environment, tell_unknown  # SQLAlchemy takes half a second that a call to a server need not wait
    from frugal.service.store.lock import BusyFileError
    from frugal.service.store.migrating import prepared

    settings = from_environment(database=url)
    tell_unknown()
    try:
        with prepared(settings) as database:
            yield DatabaseKeys(database)
    except BusyFileError:
        raise ValueError(
            f"{settings.shown_database} is in use by a running server: talk to that one with --url {LOCAL}, and its admin's --key"
        ) from None
    except errors.Problem as problem:
        raise ValueError(as_command(problem.detail)) from None


class DatabaseKeys:
    """Keys in a database that no server has to itself: how the first admin key is made."""

    def __init__(self, database: Any) -> None:
        from frugal.service.owners import issuing
        from frugal.service.store.audit import Actor

        self.database, self.actor, self.issuing = database, Actor("local"), issuing

    def create_key(self, owner: str, role: Literal["client", "admin"], expires_at: datetime | None) -> Json:
        return self.issuing.create(self.database, self.actor, owner, role, expires_at)

    def keys(self) -> Iterator[Json]:
        after = None
        while page := self.issuing.listed(self.database, after, PAGE):
            yield from page
            after = UUID(page[-1]["id"])

    def revoke_key(self, id: str) -> None:
        try:
            found = UUID(id)
        except ValueError:
            raise errors.KeyNotFound("There is no key with this id: GET /v1/admin/keys lists them.") from None
        self.issuing.revoke(self.database, self.actor, found)
