"""Add workers, the worker of a run, and the turn of a message."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table and add the columns."""
    op.create_table(
        "workers",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("seen_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.add_column("runs", sa.Column("worker", sa.Text(), server_default="", nullable=False))
    op.add_column("messages", sa.Column("turn_id", sa.Text(), server_default="", nullable=False))
