"""Data sets, jobs and their events; an idempotency key may belong to a job."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_16_3_training"
down_revision = "2026_11_16_2_keys"

MOMENT = sa.String(32).with_variant(sa.DateTime(timezone=True), "postgresql")
ACTIVE = sa.text("status IN ('queued', 'running')")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE archive_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL")
    _datasets()
    _jobs()
    op.create_table(
        "job_events",
        sa.Column("job_id", sa.Uuid, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("kind", sa.String(9), nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_job_events"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_events_jobs", ondelete="CASCADE"),
    )
    with op.batch_alter_table("idempotency_keys") as keys:
        keys.alter_column("session_id", existing_type=sa.Uuid(), nullable=True)
        keys.add_column(sa.Column("job_id", sa.Uuid))
        keys.create_foreign_key(op.f("fk_idempotency_keys_jobs"), "jobs", ["job_id"], ["id"], ondelete="CASCADE")
        keys.create_check_constraint(op.f("ck_idempotency_keys_one_work"), "(session_id IS NULL) <> (job_id IS NULL)")
    op.create_index("ix_idempotency_keys_job_id", "idempotency_keys", ["job_id"])


def _datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("archive_id", sa.Uuid, nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("source_bytes", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("costs", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.ForeignKeyConstraint(["archive_id"], ["archives.id"], name="fk_datasets_archives"),
    )
    op.create_index("ix_datasets_name", "datasets", ["name"], unique=True)
    op.create_index("ix_datasets_archive_id", "datasets", ["archive_id"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("status", sa.String(9), nullable=False),
        sa.Column("dataset_id", sa.Uuid),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("lease_token", sa.Uuid),
        sa.Column("lease_until", MOMENT),
        sa.Column("progress", sa.JSON, nullable=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("failure", sa.Text),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_jobs_datasets"),
        sa.CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name=op.f("ck_jobs_status_known")),
        sa.CheckConstraint("(lease_token IS NOT NULL) = (status = 'running')", name=op.f("ck_jobs_leased_when_running")),
        sa.CheckConstraint("(lease_until IS NOT NULL) = (status = 'running')", name=op.f("ck_jobs_lease_ends")),
        sa.CheckConstraint("(dataset_id IS NOT NULL) = (status IN ('queued', 'running'))", name=op.f("ck_jobs_needs_dataset")),
        sa.CheckConstraint("(result IS NOT NULL) = (status = 'done')", name=op.f("ck_jobs_result_when_done")),
        sa.CheckConstraint(
            "(finished_at IS NOT NULL) = (status IN ('done', 'failed', 'cancelled'))", name=op.f("ck_jobs_finished_when_over")
        ),
    )
    op.create_index("ix_jobs_dataset_id", "jobs", ["dataset_id"])
    op.create_index("ix_jobs_waiting", "jobs", ["id"], sqlite_where=ACTIVE, postgresql_where=ACTIVE)


def downgrade() -> None:
    op.execute("DELETE FROM idempotency_keys WHERE job_id IS NOT NULL")
    op.drop_index("ix_idempotency_keys_job_id", "idempotency_keys")
    with op.batch_alter_table("idempotency_keys") as keys:
        keys.drop_constraint(op.f("ck_idempotency_keys_one_work"), type_="check")
        keys.drop_constraint(op.f("fk_idempotency_keys_jobs"), type_="foreignkey")
        keys.drop_column("job_id")
        keys.alter_column("session_id", existing_type=sa.Uuid(), nullable=False)
    op.drop_table("job_events")
    op.drop_table("jobs")
    op.drop_table("datasets")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE archive_chunks ALTER COLUMN bytes SET STORAGE EXTENDED")
