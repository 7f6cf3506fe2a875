"""Add the kind of a run: a chat, or a question about data."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column; earlier runs count as chats."""
    op.add_column("runs", sa.Column("kind", sa.String(20), nullable=False, server_default="chat"))
    op.create_index("ix_runs_kind_started_at", "runs", ["kind", "started_at"])
