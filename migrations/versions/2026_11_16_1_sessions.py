"""Versions, aliases, sessions, answers, idempotency keys."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_16_1_sessions"
down_revision = None

MOMENT = sa.String(32).with_variant(sa.DateTime(timezone=True), "postgresql")
LEDGER_JSON = sa.Text().with_variant(sa.JSON(), "postgresql")
RUNNING = sa.text("status IN ('open', 'waiting')")


def upgrade() -> None:
    _registry()
    _sessions()
    _answers()


def downgrade() -> None:
    for table in ("idempotency_keys", "answers", "sessions", "aliases", "versions", "archive_chunks", "archives"):
        op.drop_table(table)


def _registry() -> None:
    op.create_table(
        "archives",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_archives"),
    )
    op.create_table(
        "archive_chunks",
        sa.Column("archive_id", sa.Uuid, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("archive_id", "position", name="pk_archive_chunks"),
        sa.ForeignKeyConstraint(["archive_id"], ["archives.id"], ondelete="CASCADE", name="fk_archive_chunks_archives"),
    )
    op.create_table(
        "versions",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("archive_id", sa.Uuid, nullable=False),
        sa.Column("description", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("retired_at", MOMENT),
        sa.PrimaryKeyConstraint("name", "number", name="pk_versions"),
        sa.CheckConstraint("number > 0", name=op.f("ck_versions_number_positive")),
        sa.ForeignKeyConstraint(["archive_id"], ["archives.id"], name="fk_versions_archives"),
    )
    op.create_table(
        "aliases",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", "alias", name="pk_aliases"),
        sa.ForeignKeyConstraint(["name", "number"], ["versions.name", "versions.number"], name="fk_aliases_versions"),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("reference", sa.Text),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("confidence", sa.Float(53)),
        sa.Column("budget", sa.BigInteger),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.Column("prediction", LEDGER_JSON),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["name", "number"], ["versions.name", "versions.number"], name="fk_sessions_versions"),
        sa.CheckConstraint("status IN ('open', 'waiting', 'done', 'expired')", name=op.f("ck_sessions_status_known")),
        sa.CheckConstraint("spent >= 0 AND (budget IS NULL OR spent <= budget)", name=op.f("ck_sessions_within_budget")),
        sa.CheckConstraint("(prediction IS NULL) = (status IN ('open', 'waiting'))", name=op.f("ck_sessions_final_when_over")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index("ix_sessions_owner_id", "sessions", ["owner", "id"])
    op.create_index("ix_sessions_due", "sessions", ["expires_at"], sqlite_where=RUNNING, postgresql_where=RUNNING)


def _answers() -> None:
    op.create_table(
        "answers",
        sa.Column("session_id", sa.Uuid, nullable=False),
        sa.Column("feature", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("status", sa.String(11), nullable=False),
        sa.Column("value", LEDGER_JSON),
        sa.Column("cost", sa.BigInteger, nullable=False),
        sa.Column("bought", sa.Boolean, nullable=False),
        sa.Column("source", sa.String(6), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "feature", name="pk_answers"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], ondelete="CASCADE", name="fk_answers_sessions"),
        sa.CheckConstraint("status IN ('value', 'pending', 'unavailable')", name=op.f("ck_answers_status_known")),
        sa.CheckConstraint("source IN ('known', 'answer')", name=op.f("ck_answers_source_known")),
        sa.CheckConstraint("cost >= 0 AND (cost = 0 OR bought)", name=op.f("ck_answers_cost_bought")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("route", sa.String(64), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("body_sha256", sa.String(64), nullable=False),
        sa.Column("session_id", sa.Uuid, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("owner", "route", "key", name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], ondelete="CASCADE", name="fk_idempotency_keys_sessions"),
    )
    op.create_index("ix_idempotency_keys_session_id", "idempotency_keys", ["session_id"])
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
