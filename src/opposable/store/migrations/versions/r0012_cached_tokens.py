"""Add the cached input tokens to the use of models."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column; the earlier tokens count as not cached."""
    op.add_column("model_usage", sa.Column("cached_tokens", sa.BigInteger, nullable=False, server_default="0"))
