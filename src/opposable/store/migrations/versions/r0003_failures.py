"""What is remembered of failures found by scope, and what is pinned of them, however many there are."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the indexes."""
    op.create_index("ix_failures_tool_id_scope_last_seen", "failures", ["tool_id", "scope", "last_seen"])
    pinned = sa.text("pinned")
    op.create_index("ix_failures_pinned_tool_id", "failures", ["tool_id"], sqlite_where=pinned, postgresql_where=pinned)
