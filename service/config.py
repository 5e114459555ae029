"""Settings: one class, read from environment variables with the prefix FRUGAL_. README.md has the table."""

import difflib
import ipaddress
import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from frugal.service.address import Address, read_password
from frugal.service.expecting import expected
from frugal.service.keyform import well_formed

PREFIX = "FRUGAL_"
OTHERS = {"URL", "KEY"}  # what commands that call a server read
LEAST_TRAINING = 268_435_456  # bytes that a training needs before it has any table
BYTES_PER_SECOND = 1024  # how slow a client may send a body or take a reply
# Compared without digits at the end and what stands between letters: change-me, Change_Me1 and <changeme> are one.
PLACEHOLDERS = {
    "admin",
    "changeit",
    "changeme",
    "default",
    "dummy",
    "example",
    "fixme",
    "frugal",
    "letmein",
    "mypassword",
    "pass",
    "passwd",
}
PLACEHOLDERS |= {"password", "placeholder", "postgres", "postgresql", "replace", "replaceme", "root", "secret", "setme", "test", "todo"}
PLACEHOLDERS |= {"tobechanged", "yourpassword", "yourpasswordhere", "xxx"}


class Settings(BaseModel):
    """Every setting with its default and, in `description`, its line of the README's table."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)  # a database's address has a password in it

    database: str = Field(
        "sqlite:///var/frugal.db", description="where state is kept: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
    )
    database_password_file: Path | None = Field(
        None, description="file with the PostgreSQL password, in place of one in `FRUGAL_DATABASE`; read for every new connection"
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    workers: int = Field(1, ge=1, le=64, description="server processes; more than 1 needs PostgreSQL")
    migrate: Literal["auto", "never"] = Field("auto", description="`auto`: serve migrates before it starts; `never`: something else does")
    session_ttl: int = Field(604_800, ge=1, le=315_360_000, description="seconds from its opening until a session expires")
    sweep_every: float = Field(10.0, gt=0, le=3600, description="seconds between two sweeps of expired sessions and old idempotency keys")
    pool: int = Field(8, ge=1, le=200, description="connections per process to PostgreSQL for sessions; half as many for all else")
    loaded_versions: int = Field(16, ge=1, le=10_000, description="versions a process keeps loaded")
    drain: float = Field(1.0, ge=0, le=600, description="seconds between SIGTERM, when /readyz turns 503, and the end of listening")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="what is logged; `info` has a line per request")
    head_timeout: float = Field(10.0, ge=1, le=600, description="seconds that the first line and headers of a request may take to arrive")
    body_timeout: float = Field(
        30.0, ge=1, le=600, description="seconds without progress after which a body, or a reply that is not taken, is given up"
    )
    idle_timeout: float = Field(60.0, ge=1, le=3600, description="seconds that a connection is kept open between two requests")
    max_connections: int = Field(1000, ge=1, le=1_000_000, description="connections of clients per process; the longest idle makes room")
    max_queue: int = Field(
        512, ge=1, le=100_000, description="requests per process that may wait for the same thing; one more is 503 at once"
    )
    max_body: int = Field(1_048_576, ge=1024, description="bytes of a request body")
    max_upload: int = Field(16_777_216, ge=1024, description="bytes of a body of rows to predict, or of an uploaded archive")
    max_open_sessions: int = Field(1_000_000, ge=1, description="open sessions per owner")
    max_rate: int = Field(1000, ge=1, description="rate limit: requests per second for each key in each process; bursts up to twice this")
    retention: int = Field(0, ge=0, description="seconds that a session which is over is kept after its time to live; 0: for ever")
    admin_key: str | None = Field(None, repr=False, description="static admin key, not stored in the database: `frugal keys new` makes one")
    max_depth: int = Field(20, ge=4, le=500, description="levels of arrays and objects in a body")
    max_fields: int = Field(10_000, ge=10, description="fields of an object in a body, and answers at once")
    max_rows: int = Field(100_000, ge=1, description="rows per predict")
    max_dataset: int = Field(536_870_912, ge=1024, description="bytes of an uploaded data set as it is sent")
    max_dataset_unpacked: int = Field(2_147_483_648, ge=1024, description="bytes of it once decompressed")
    max_dataset_rows: int = Field(20_000_000, ge=1, description="rows of a data set")
    max_dataset_columns: int = Field(4096, ge=2, description="columns of a data set")
    max_categories: int = Field(10_000, ge=2, description="different words in one column of a data set")
    max_dataset_memory: int = Field(1_073_741_824, ge=1_048_576, description="bytes of its columns in memory; reading may take twice that")
    max_field: int = Field(65_536, ge=64, description="bytes of one cell of a data set")
    lease: float = Field(30.0, ge=1, le=3600, description="seconds without a heartbeat before another worker may take over a job")
    max_watchers: int = Field(500, ge=1, description="streams of job events per process, and at most half of its connections; more get 503")
    job_retention: int = Field(
        2_592_000, ge=0, description="seconds to keep a finished job and its events; its published version stays; 0: for ever"
    )
    staged_retention: int = Field(
        3600, ge=60, description="seconds after which uploaded bytes that became neither a version nor a data set are deleted"
    )
    training_seconds: int = Field(14_400, ge=1, description="seconds that a training may take")
    training_memory: int = Field(4_294_967_296, ge=0, description="bytes that a training may allocate, 268435456 or more; 0: no limit")

    @field_validator("database")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if not url.startswith(("sqlite:///", "postgresql://", "postgres://")):
            raise ValueError("expected sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME")
        if url.startswith("sqlite:///") and url.removeprefix("sqlite:///") in ("", ":memory:"):
            raise ValueError("a database in memory is lost with its process: name a file")
        if not url.startswith("sqlite:///"):
            address = Address.read(url)
            check_password(address, address.password)
        return url

    @field_validator("database_password_file")
    @classmethod
    def _one_password(cls, file: Path | None, info: ValidationInfo) -> Path | None:
        url = info.data.get("database", "sqlite:///")
        if file is None or url.startswith("sqlite:///"):
            return file
        address = Address.read(url)
        if address.password is not None:
            raise ValueError("FRUGAL_DATABASE has a password too: leave one of them out")
        try:
            check_password(address, read_password(file))
        except OSError as error:
            named = f"{file}: {error.strerror}" if "/" in str(file) else f"{error.strerror}: it names a file, it is not the password itself"
            raise ValueError(named if error.strerror else str(error)) from None
        return file

    @field_validator("training_memory")
    @classmethod
    def _enough_memory(cls, size: int) -> int:
        if 0 < size < LEAST_TRAINING:
            raise ValueError(
                f"expected {LEAST_TRAINING} or more, or 0 for no limit: with less, a training could not even start its threads"
            )
        return size

    @field_validator("admin_key")
    @classmethod
    def _real_key(cls, key: str | None) -> str | None:
        if key and not well_formed(key):
            raise ValueError("not a key: make one with frugal keys new")
        return key or None

    @property
    def sqlite_file(self) -> Path | None:
        return Path(self.database.removeprefix("sqlite:///")) if self.database.startswith("sqlite:///") else None

    @property
    def most_watchers(self) -> int:
        """Those who watch leave half of the connections to those who work."""
        return max(1, min(self.max_watchers, self.max_connections // 2))

    @property
    def address(self) -> Address:
        """Where the PostgreSQL database is."""
        return Address.read(self.database, self.database_password_file)

    @property
    def shown_database(self) -> str:
        """The database without its password."""
        return self.database if self.sqlite_file else self.address.shown

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, self.shown_database if name == "database" else value


def check_password(address: Address, password: str | None) -> None:
    """Refuse a password that everybody knows, for a database that others can reach; none at all may be a certificate's or a file's work."""
    if password is None or all(host.startswith("/") or is_loopback(host) for host in address.hosts):
        return
    letters = re.sub(r"[^a-z0-9]", "", password.lower())
    if not letters or letters.rstrip("0123456789") in PLACEHOLDERS:
        raise ValueError("the password is a placeholder: set a random one, on the database too; for docker compose, `make env` makes one")


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def from_environment(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """The settings of FRUGAL_ variables; `overrides` that are not None win. ValueError names the variable."""
    given = os.environ if environment is None else environment
    found: dict[str, Any] = {name: given[PREFIX + name.upper()] for name in Settings.model_fields if PREFIX + name.upper() in given}
    try:
        return Settings(**found | {name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        where = f"--{name}" if overrides.get(name) is not None else PREFIX + name.upper()
        ours = first["type"] == "value_error"  # a sentence of a validator above, which repeats no secret
        raise ValueError(f"{where}: {first['ctx']['error'] if ours else expected(Settings.model_fields[name], first['input'])}") from None


def unknown_variables(environment: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Variables with our prefix that nothing reads, each with the known name that is most like it."""
    given = os.environ if environment is None else environment
    known = {name.upper() for name in Settings.model_fields} | OTHERS
    unknown = sorted(name for name in given if name.upper().startswith(PREFIX) and name.removeprefix(PREFIX) not in known)
    near = {name: difflib.get_close_matches(name.upper().removeprefix(PREFIX), sorted(known), 1) for name in unknown}
    return {name: PREFIX + found[0] if found else None for name, found in near.items()}


def tell_unknown() -> None:
    """Say on stderr which of our variables are not read: a setting that was misspelt would be missed in silence."""
    for name, near in unknown_variables().items():
        hint = f"did you mean {near}?" if near else "README.md lists the settings"
        print(f"frugal: {name} is not a setting and is ignored: {hint}", file=sys.stderr)


def to_environment(settings: Settings) -> dict[str, str]:
    """The variables that give these settings again: how `serve` hands its options to worker processes."""
    return {PREFIX + name.upper(): str(value) for name, value in settings.model_dump().items() if value is not None}
