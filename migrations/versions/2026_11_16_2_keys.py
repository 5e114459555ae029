"""Keys and the audit log; indexes for retention and for the count of open sessions."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_16_2_keys"
down_revision = "2026_11_16_1_sessions"

RUNNING = sa.text("status IN ('open', 'waiting')")
OVER = sa.text("status IN ('done', 'expired')")
MOMENT = sa.String(32).with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
        sa.CheckConstraint("role IN ('client', 'admin')", name=op.f("ck_keys_role_known")),
    )
    op.create_index("ix_keys_sha256", "keys", ["sha256"], unique=True)
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("key_id", sa.Uuid),
        sa.Column("request_id", sa.String(64)),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
    )

    op.create_index("ix_sessions_past", "sessions", ["expires_at"], sqlite_where=OVER, postgresql_where=OVER)
    op.create_index("ix_sessions_running", "sessions", ["owner"], sqlite_where=RUNNING, postgresql_where=RUNNING)


def downgrade() -> None:
    op.drop_index("ix_sessions_running", "sessions")
    op.drop_index("ix_sessions_past", "sessions")
    op.drop_table("audit_log")
    op.drop_table("keys")
