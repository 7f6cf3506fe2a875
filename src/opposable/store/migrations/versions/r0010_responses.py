"""Create the table of the responses that the gateway stores, or that servers of models store."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Create the responses."""
    op.create_table(
        "responses",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("items", JSON, nullable=False),
        sa.Column("body", JSON),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_responses"),
    )
    op.create_index("ix_responses_created_at_id", "responses", ["created_at", "id"])
