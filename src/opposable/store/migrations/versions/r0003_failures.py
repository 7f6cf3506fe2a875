"""Add partial indexes of informative and pinned failures."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the indexes. Their conditions equal those of the queries on each database."""
    for name, columns, which in (
        ("ix_failures_teaching", ["tool_id", "scope", "last_seen"], "correction IS NOT NULL OR count >= 2 OR pinned"),
        ("ix_failures_pinned", ["tool_id", "scope"], "pinned"),
    ):
        op.create_index(
            name, "failures", columns, sqlite_where=sa.text(f"{which} = 1"), postgresql_where=sa.text(which)
        )
