"""The commands that talk to a server: keys, models, the interview. Keys can be made on the database too, before any server runs."""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

from models import Feature
from models.schema import Value
from service import errors
from service.client import LOCAL, Client, ClientError, Json, Problem, Unreachable
from service.interview import Now, told
from service.keyform import new_key

ATTEMPTS = 3  # somebody is watching
AS_COMMANDS = {
    "GET /v1/models lists": "frugal models list shows",
    "GET /v1/admin/keys lists": "frugal keys list shows",
    "must be an admin key:": "must be an admin key (--role admin):",
}
PAGE = 100


# The interview


def ask(options: argparse.Namespace) -> str:
    """The interview with a model on a server."""
    with connected(options) as client:
        return told(RemoteCase(client, client.open(options.model, options.budget)), options.json)


class RemoteCase:
    """A session on a server, as the interview sees it."""

    def __init__(self, client: Client, session: Json) -> None:
        self.client, self.session = client, session

    def now(self) -> Now:
        asked, said = self.session["ask"], self.session["prediction"]
        reason = said["reason"] or ("waiting" if asked is None else None)
        money = self.session["spent"], self.session["budget"]
        return Now(_feature(asked), asked["cost"] if asked else 0.0, *money, said["label"], said["probabilities"], reason)

    def answer(self, feature: str, value: Value) -> Now:
        self.session = self.client.answer(self.session["id"], feature, value)
        return self.now()

    def stop(self) -> Now:
        self.session = self.client.finish(self.session["id"])
        return self.now()

    def shown(self) -> Json:
        return self.session


def _feature(asked: Json | None) -> Feature | None:
    if asked is None:
        return None
    return Feature(asked["feature"], asked["kind"], tuple(asked["categories"] or ()), asked["unit"], asked["question"])


# Models


def models_list(options: argparse.Namespace) -> str:
    with connected(options) as client:
        found = list(client.models())
    rows = [_version_row(version) for model in found for version in model["versions"]]
    empty = "no models yet: publish one with frugal models push NAME FILE"
    return _listed(options, found, ("name", "version", "aliases", "bytes", "published", "retired"), rows, empty)


def models_push(options: argparse.Namespace) -> str:
    with connected(options) as client:
        made = client.publish(options.name, options.file, options.alias)
    named = f"; {made['name']}@{options.alias} is this version now" if options.alias else ""
    return _said(
        options, made, f"published {made['name']}:{made['version']}, which new sessions for {made['name']} take from now on{named}"
    )


def models_alias(options: argparse.Namespace) -> str:
    with connected(options) as client:
        model = client.set_alias(options.name, options.alias, options.version)
    return _said(
        options, model, f"{options.name}@{options.alias} is {options.name}:{options.version} now; running sessions stay as they are"
    )


def models_retire(options: argparse.Namespace) -> str:
    with connected(options) as client:
        version = client.retire(options.name, options.version)
    named = f"{options.name}:{options.version}"
    return _said(options, version, f"{named} is retired: a bare {options.name} no longer means it; its number and aliases still do")


def _version_row(version: Json) -> tuple[str, ...]:
    about = version["name"], str(version["version"]), " ".join(version["aliases"])
    return (*about, f"{version['size']:,}", _when(version["created_at"]), _when(version["retired_at"]))


# Keys


def keys_new(options: argparse.Namespace) -> str:
    """A key for FRUGAL_ADMIN_KEY, which no database knows."""
    key = new_key()
    return json.dumps({"key": key}) if options.json else key


def keys_create(options: argparse.Namespace) -> str:
    until = expiry(options.expires)
    with opened_keys(options) as keys:
        made = keys.create_key(options.owner, options.role, until)
    life = f"until {_when(made['expires_at'])} UTC" if made["expires_at"] else "until it is revoked"
    about = f"This is the key of {made['owner']} ({made['role']}, {life}). It is shown this once: keep it now."
    return _said(options, made, f"{made['key']}\n\n{about}\nTo revoke it: frugal keys revoke {made['id']}")


def keys_list(options: argparse.Namespace) -> str:
    with opened_keys(options) as keys:
        found = list(keys.keys())
    rows = [(k["id"], k["owner"], k["role"], _when(k["created_at"]), _when(k["expires_at"]), _when(k["revoked_at"])) for k in found]
    empty = "no keys yet: make the first with frugal keys create --owner NAME --role admin"
    return _listed(options, found, ("id", "owner", "role", "made", "expires", "revoked"), rows, empty)


def keys_revoke(options: argparse.Namespace) -> str:
    with opened_keys(options) as keys:
        keys.revoke_key(options.id)
    return _said(
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
    from service.config import from_environment  # SQLAlchemy takes half a second that a call to a server need not wait
    from service.store.lock import BusyFileError
    from service.store.migrating import prepared

    settings = from_environment(database=url)
    try:
        with prepared(settings) as database:
            yield DatabaseKeys(database)
    except BusyFileError:
        raise ValueError(
            f"{settings.shown_database} is in use by a running server: talk to that one with --url {LOCAL}, and its admin's --key"
        ) from None
    except errors.Problem as problem:
        raise ValueError(_as_command(problem.detail)) from None


class DatabaseKeys:
    """Keys in a database that no server has to itself: how the first admin key is made."""

    def __init__(self, database: Any) -> None:
        from service.owners import keys
        from service.store.audit import Actor

        self.database, self.actor, self.owners_keys = database, Actor("local"), keys

    def create_key(self, owner: str, role: Literal["client", "admin"], expires_at: datetime | None) -> Json:
        return self.owners_keys.create(self.database, self.actor, owner, role, expires_at)

    def keys(self) -> Iterator[Json]:
        after = None
        while page := self.owners_keys.listed(self.database, after, PAGE):
            yield from page
            after = UUID(page[-1]["id"])

    def revoke_key(self, id: str) -> None:
        try:
            found = UUID(id)
        except ValueError:
            raise errors.KeyNotFound("There is no key with this id: GET /v1/admin/keys lists them.") from None
        self.owners_keys.revoke(self.database, self.actor, found)


# What the commands share


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the server that the options or the environment name; what goes wrong is a ValueError that says what to do."""
    url = options.url or os.environ.get("FRUGAL_URL") or LOCAL
    key = options.key or os.environ.get("FRUGAL_KEY")
    try:
        with Client(url, key, attempts=ATTEMPTS) as client:
            yield client
    except Unreachable as error:
        if error.sent:
            raise ValueError(str(error)) from None
        raise ValueError(f"no server at {url} ({error.__cause__}): start one with frugal serve, or say where it is with --url") from None
    except Problem as problem:
        raise ValueError(_advice(problem, bool(key))) from None
    except ClientError as error:
        raise ValueError(str(error)) from None


def _advice(problem: Problem, had_key: bool) -> str:
    """What the server said, with what to type."""
    if problem.status == 401 and not had_key:
        return "this server wants a key: give it with --key or FRUGAL_KEY"
    if problem.status == 401:
        return "this key is unknown to the server, revoked or expired: give another with --key or FRUGAL_KEY"
    if problem.slug == "forbidden":
        return "this is a client's key: give an admin's with --key or FRUGAL_KEY"
    return _as_command(problem.detail)


def _as_command(detail: str) -> str:
    for call, command in AS_COMMANDS.items():
        detail = detail.replace(call, command)
    return detail


def _said(options: argparse.Namespace, reply: Json, sentence: str) -> str:
    return json.dumps(reply, indent=2) if options.json else sentence


def _listed(options: argparse.Namespace, items: list[Json], heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    if options.json:
        return json.dumps({"items": items}, indent=2)
    return table([heads, *rows]) if rows else empty


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as what is in them.

    Examples
    --------
    >>> print(table([("name", "version"), ("heart", "1")]))
    name   version
    heart  1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _when(at: str | None) -> str:
    """A time of the wire, to the minute."""
    return "" if at is None else at[:16].replace("T", " ")
