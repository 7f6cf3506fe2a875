"""Add the model of a run."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column; the models of earlier runs are unknown."""
    op.add_column("runs", sa.Column("model", sa.Text, nullable=False, server_default=""))
