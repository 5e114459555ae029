"""Publish, alias, retire, describe: what can be done with versions. Plain and synchronous."""

import re
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from frugal.models import Ensemble, load
from frugal.models.tensors import BadArchive
from frugal.service.errors import BadArchiveSent, InvalidRequest, ModelNotFound, VersionDamaged
from frugal.service.registry.describing import describe
from frugal.service.store import archives, audit, version_rows
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database
from frugal.service.store.tables import iso

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
REFERENCE = re.compile(rf"(?P<name>{NAME})(?:@(?P<alias>{NAME})|:(?P<number>[1-9][0-9]{{0,8}}))?")
REFERENCE_WORDS = "expected name, name@alias or name:version, in lower case letters, digits, dots, dashes and underscores"


def publish(database: Database, name: str, data: bytes, actor: Actor, alias: str | None = None) -> dict[str, Any]:
    """Check an archive, store it as the next version of a name, and describe it. The alias moves in the same transaction."""
    check_name(name)
    try:
        ensemble = load(data)
    except BadArchive as error:
        raise BadArchiveSent(f"{error}") from None
    about = describe(ensemble)
    archive_id = archives.stage(database, data)
    number = database.write(lambda db: insert(db, name, archive_id, about, actor, alias))
    return version(database, name, number)


def insert(db: Connection, name: str, archive_id: UUID, about: dict[str, Any], actor: Actor, alias: str | None) -> int:
    """The next version of a name, within the caller's transaction; its bytes are staged already."""
    number = version_rows.insert_version(db, name, archive_id, about)
    if alias is not None:
        version_rows.set_alias(db, name, alias, number)
    audit.record(db, actor, "version.publish", f"{name}:{number}", {"alias": alias} if alias else {})
    return number


def set_alias(database: Database, name: str, alias: str, number: int, actor: Actor) -> None:
    find_name(name)
    check_name(alias)

    def move(db: Connection) -> None:
        if version_rows.archive_of(db, name, number) is None:
            raise unknown()
        version_rows.set_alias(db, name, alias, number)
        audit.record(db, actor, "alias.set", f"{name}@{alias}", {"version": number})

    database.write(move)


def drop_alias(database: Database, name: str, alias: str, actor: Actor) -> None:
    find_name(name)
    find_name(alias)

    def drop(db: Connection) -> None:
        if not version_rows.drop_alias(db, name, alias):
            raise unknown()
        audit.record(db, actor, "alias.drop", f"{name}@{alias}", {})

    database.write(drop)


def retire(database: Database, name: str, number: int, actor: Actor) -> dict[str, Any]:
    """Take a version out of what a bare name means; sessions on it go on, and it can still be named by number or alias."""
    find_name(name)

    def end(db: Connection) -> None:
        if not version_rows.retire(db, name, number):
            raise unknown()
        audit.record(db, actor, "version.retire", f"{name}:{number}", {})

    database.write(end)
    return version(database, name, number)


def resolve(database: Database, reference: str) -> tuple[str, int]:
    """The name and number that `name`, `name@alias` or `name:version` means now."""
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise InvalidRequest(f"model: {REFERENCE_WORDS}")
    name, alias = match["name"], match["alias"]

    def find(db: Connection) -> int | None:
        if match["number"]:
            number = int(match["number"])
            return number if version_rows.archive_of(db, name, number) else None
        return version_rows.aliased(db, name, alias) if alias else version_rows.newest(db, name)

    found = database.read(find)
    if found is None:
        raise unknown()
    return name, found


def read_ensemble(database: Database, name: str, number: int) -> Ensemble:
    """A version's ensemble, its bytes checked against their SHA-256."""

    def fetch(db: Connection) -> bytes:
        archive_id = version_rows.archive_of(db, name, number)
        if archive_id is None:
            raise unknown()
        return archives.fetch(db, archive_id)

    try:
        return load(database.read(fetch))
    except ValueError as error:
        raise VersionDamaged(
            f"The stored bytes of {name}:{number} are damaged: publish the model again, and open new sessions. Answers are kept."
        ) from error


def version(database: Database, name: str, number: int) -> dict[str, Any]:
    """All that is told of a version."""
    find_name(name)

    def find(db: Connection) -> Any:
        return version_rows.one(db, name, number), version_rows.aliases_of(db, [name])[name]

    row, aliases = database.read(find)
    if row is None:
        raise unknown()
    return {**_summary(row, aliases), "frontier": None, **row.description}  # what an earlier release published has no word of it


def model(database: Database, name: str) -> dict[str, Any]:
    """A name with its versions and aliases."""
    find_name(name)
    found = models_after(database, None, [name])
    if not found:
        raise unknown()
    return found[0]


def models_after(database: Database, limit: int | None, named: list[str] | None = None, after: str = "") -> list[dict[str, Any]]:
    """Names in order, each with its versions and aliases."""

    def find(db: Connection) -> Any:
        chosen = named if named is not None else version_rows.names(db, after, limit or 1)
        return chosen, version_rows.versions_of(db, chosen), version_rows.aliases_of(db, chosen)

    chosen, rows, aliases = database.read(find)
    grouped: dict[str, list[Any]] = {name: [] for name in chosen}
    for row in rows:
        grouped[row.name].append(_summary(row, aliases[row.name]))
    return [{"name": name, "versions": found, "aliases": aliases[name]} for name, found in grouped.items() if found]


def is_name(text: str) -> bool:
    """Whether a model, an alias or a data set can be called that: what cannot be a name is not there, and not worth asking the database."""
    return re.fullmatch(NAME, text) is not None


def check_name(name: str, field: str = "name") -> None:
    if not is_name(name):
        raise InvalidRequest(
            f"{field}: a name has 1 to 64 lower case letters, digits, dots, dashes and underscores, and starts with a letter or digit.",
            pattern=NAME,
        )


def find_name(name: str) -> None:
    if not is_name(name):
        raise unknown()


def unknown() -> ModelNotFound:
    return ModelNotFound("There is no such model, alias or version: GET /v1/models lists what there is.")


def _summary(row: Any, aliases: dict[str, int]) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.number,
        "aliases": [alias for alias, number in aliases.items() if number == row.number],
        "sha256": row.sha256,
        "size": row.size,
        "created_at": iso(row.created_at),
        "retired_at": iso(row.retired_at) if row.retired_at else None,
    }
