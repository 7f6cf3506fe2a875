"""Create the table of confirmed questions and their SQL."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the query examples."""
    op.create_table(
        "query_examples",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("database", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("sql", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_query_examples"),
    )
    op.create_index("ix_query_examples_database_created_at", "query_examples", ["database", "created_at"])
