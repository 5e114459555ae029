"""The SQL tables. Migrations lead here step by step; a test holds the two equal.

Money is BIGINT millionths; times are UTC; ids are UUIDv7, so they sort by time.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    DDL,
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    Uuid,
    event,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

RUNNING = ("open", "waiting")
OVER = ("done", "expired")

# JSON that the ledger writes and reads as text. SQLite would keep a column of type JSON as numbers where it can, with 15 digits of them.
LEDGER_JSON = Text().with_variant(JSON(), "postgresql")


class Moment(TypeDecorator[datetime]):
    """A moment in UTC: timestamptz on PostgreSQL; on SQLite ISO 8601 text of fixed width, which sorts and which the ledger reads too."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else String(32))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else iso(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return datetime.fromisoformat(value) if isinstance(value, str) else value


def iso(moment: datetime) -> str:
    """RFC 3339 in UTC with six decimals and Z: the form of the wire and of SQLite."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")[:-6] + "Z"


def now() -> datetime:
    return datetime.now(UTC)


archives = Table(
    "archives",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False),
)

archive_chunks = Table(
    "archive_chunks",
    metadata,
    Column("archive_id", Uuid, ForeignKey("archives.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)

# What is stored is large and hardly shrinks: PostgreSQL would try to compress every chunk, at a fifth of the speed.
event.listen(
    archive_chunks,
    "after_create",
    DDL("ALTER TABLE archive_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL").execute_if(dialect="postgresql"),  # type: ignore[no-untyped-call]
)

versions = Table(
    "versions",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("archive_id", Uuid, ForeignKey("archives.id"), nullable=False),
    Column("description", JSON, nullable=False),  # what is told of a version without loading it
    Column("created_at", Moment, nullable=False),
    Column("retired_at", Moment),
    CheckConstraint("number > 0", name="number_positive"),
)

aliases = Table(
    "aliases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("alias", String(64), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("updated_at", Moment, nullable=False),
    ForeignKeyConstraint(["name", "number"], ["versions.name", "versions.number"]),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("name", String(64), nullable=False),
    Column("number", Integer, nullable=False),
    Column("status", String(8), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("reference", Text),
    Column("seed", BigInteger, nullable=False),
    Column("aim", BigInteger),  # as it was asked for, like the confidence
    Column("confidence", Float(53)),
    Column("stop_confidence", Float(53)),  # the operating point that both came to at the opening, and that holds to the end
    Column("stop_cap", BigInteger),
    Column("budget", BigInteger),
    Column("spent", BigInteger, nullable=False),
    Column("prediction", LEDGER_JSON),  # the final one
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    ForeignKeyConstraint(["name", "number"], ["versions.name", "versions.number"]),
    CheckConstraint("status IN ('open', 'waiting', 'done', 'expired')", name="status_known"),
    CheckConstraint("spent >= 0 AND (budget IS NULL OR spent <= budget)", name="within_budget"),
    CheckConstraint("(prediction IS NULL) = (status IN ('open', 'waiting'))", name="final_when_over"),
    Index(None, "owner", "id"),
    # A step touches no indexed column, so PostgreSQL rewrites the row in its page (fillfactor leaves room for that).
    Index(
        "ix_sessions_due",
        "expires_at",
        sqlite_where=text("status IN ('open', 'waiting')"),
        postgresql_where=text("status IN ('open', 'waiting')"),
    ),
    Index(
        "ix_sessions_past",
        "expires_at",
        sqlite_where=text("status IN ('done', 'expired')"),
        postgresql_where=text("status IN ('done', 'expired')"),
    ),
    Index(
        "ix_sessions_running",
        "owner",
        sqlite_where=text("status IN ('open', 'waiting')"),
        postgresql_where=text("status IN ('open', 'waiting')"),
    ),
    postgresql_with={"fillfactor": 70},
)

answers = Table(
    "answers",
    metadata,
    Column("session_id", Uuid, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("feature", Text, primary_key=True),  # one charge per session and feature
    Column("position", Integer, nullable=False),
    Column("status", String(11), nullable=False),
    Column("value", LEDGER_JSON),
    Column("cost", BigInteger, nullable=False),
    Column("bought", Boolean, nullable=False),  # its purchase sets the prices of its group
    Column("source", String(6), nullable=False),
    Column("at", Moment, nullable=False),
    CheckConstraint("status IN ('value', 'pending', 'unavailable')", name="status_known"),
    CheckConstraint("source IN ('known', 'answer')", name="source_known"),
    CheckConstraint("cost >= 0 AND (cost = 0 OR bought)", name="cost_bought"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("route", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("body_sha256", String(64), nullable=False),
    Column("session_id", Uuid, ForeignKey("sessions.id", ondelete="CASCADE")),
    Column("created_at", Moment, nullable=False),
    Column("job_id", Uuid, ForeignKey("jobs.id", ondelete="CASCADE")),
    CheckConstraint("(session_id IS NULL) <> (job_id IS NULL)", name="one_work"),
    Index(None, "session_id"),
    Index(None, "job_id"),
    Index(None, "created_at"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("sha256", String(64), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("role", String(8), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    CheckConstraint("role IN ('client', 'admin')", name="role_known"),
    Index(None, "sha256", unique=True),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("owner", String(64), nullable=False),
    Column("key_id", Uuid),  # no foreign key: the log outlives what it tells of
    Column("request_id", String(64)),
    Column("action", String(32), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("details", JSON, nullable=False),
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(64), nullable=False),
    Column("archive_id", Uuid, ForeignKey("archives.id"), nullable=False),  # the packed columns
    Column("owner", String(64), nullable=False),
    Column("source_bytes", BigInteger, nullable=False),  # as it was sent
    Column("rows", BigInteger, nullable=False),
    Column("columns", JSON, nullable=False),  # what is told of each column without loading it
    Column("costs", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "name", unique=True),
    Index(None, "archive_id"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("status", String(9), nullable=False),
    Column("dataset_id", Uuid, ForeignKey("datasets.id")),  # while the job needs it: a data set in use cannot be deleted
    Column("spec", JSON, nullable=False),  # what was asked for, complete
    Column("attempts", Integer, nullable=False),
    Column("lease_token", Uuid),  # whoever trains it writes with this; a new claim is a new token
    Column("lease_until", Moment),  # by the database's clock
    Column("progress", JSON, nullable=False),
    Column("events", Integer, nullable=False),  # how many there are: the next one's number
    Column("result", JSON(none_as_null=True)),
    Column("failure", Text),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("updated_at", Moment, nullable=False),
    Column("finished_at", Moment),
    CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="status_known"),
    CheckConstraint("(lease_token IS NOT NULL) = (status = 'running')", name="leased_when_running"),
    CheckConstraint("(lease_until IS NOT NULL) = (status = 'running')", name="lease_ends"),
    CheckConstraint("(dataset_id IS NOT NULL) = (status IN ('queued', 'running'))", name="needs_dataset"),
    CheckConstraint("(result IS NOT NULL) = (status = 'done')", name="result_when_done"),
    CheckConstraint("(finished_at IS NOT NULL) = (status IN ('done', 'failed', 'cancelled'))", name="finished_when_over"),
    Index(None, "dataset_id"),
    Index(
        "ix_jobs_waiting",
        "id",
        sqlite_where=text("status IN ('queued', 'running')"),
        postgresql_where=text("status IN ('queued', 'running')"),
    ),
)

job_events = Table(
    "job_events",
    metadata,
    Column("job_id", Uuid, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Moment, nullable=False),
    Column("kind", String(9), nullable=False),
    Column("data", JSON, nullable=False),
)
