"""Sessions keep what they aim at, and the operating point that they stop by."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_18_1_aims"
down_revision = "2026_11_16_3_training"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("aim", sa.BigInteger))
    op.add_column("sessions", sa.Column("stop_confidence", sa.Float(53)))
    op.add_column("sessions", sa.Column("stop_cap", sa.BigInteger))
    op.execute("UPDATE sessions SET stop_confidence = confidence WHERE confidence IS NOT NULL")  # those that exist stop as before


def downgrade() -> None:
    for name in ("stop_cap", "stop_confidence", "aim"):
        op.drop_column("sessions", name)
