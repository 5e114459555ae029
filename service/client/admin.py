"""Models, keys and the log of who did what."""

from collections.abc import Iterator
from datetime import datetime
from os import PathLike
from pathlib import Path

from frugal.service.client.problems import Json
from frugal.service.client.wire import Wire, given, path_of


class Models(Wire):
    """What there is to predict with, and the admin's calls."""

    def models(self) -> Iterator[Json]:
        """Names in alphabetical order, each with its versions and aliases."""
        return self._pages("/v1/models")

    def model(self, name: str) -> Json:
        return self._json("GET", path_of("/v1/models", name))

    def version(self, name: str, number: int) -> Json:
        """Schema, costs, metrics and curve of a version."""
        return self._json("GET", path_of("/v1/models", name, "versions", number))

    # For admins

    def publish(self, name: str, archive: bytes | str | PathLike[str], alias: str | None = None) -> Json:
        """Publish a model file, by its path or its bytes, as the next version of a name. Sent once: twice would be two versions."""
        data = archive if isinstance(archive, bytes) else Path(archive).read_bytes()
        headers = {"Content-Type": "application/octet-stream"}
        return self._json("POST", "/v1/admin/models", params=given(name=name, alias=alias), content=data, headers=headers, repeat=False)

    def set_alias(self, name: str, alias: str, version: int) -> Json:
        """Let an alias stand for a version; gives the model."""
        return self._json("PUT", path_of("/v1/admin/models", name, "aliases", alias), {"version": version})

    def drop_alias(self, name: str, alias: str) -> None:
        self._delete(path_of("/v1/admin/models", name, "aliases", alias))

    def retire(self, name: str, number: int) -> Json:
        """Take a version out of what the bare name means; gives the version."""
        return self._json("POST", path_of("/v1/admin/models", name, "versions", number, "retire"))

    def create_key(self, owner: str, role: str = "client", expires_at: datetime | str | None = None) -> Json:
        """Make a key; `key` of the reply is the key itself, shown here and never again. Sent once: twice would be two keys."""
        until = expires_at.isoformat() if isinstance(expires_at, datetime) else expires_at
        return self._json("POST", "/v1/admin/keys", given(owner=owner, role=role, expires_at=until), repeat=False)

    def keys(self) -> Iterator[Json]:
        """All keys in the order they were made, without what they are."""
        return self._pages("/v1/admin/keys")

    def revoke_key(self, id: str) -> None:
        """Let a key count no more, from at most five seconds on."""
        self._delete(path_of("/v1/admin/keys", id))

    def audit(self) -> Iterator[Json]:
        """Who published, moved, retired, revoked and deleted, newest first."""
        return self._pages("/v1/admin/audit")
