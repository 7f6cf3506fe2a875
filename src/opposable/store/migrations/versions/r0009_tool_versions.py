"""Create the table of the versions of tools."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Create the versions of tools. A stored tool gets its first one when it is saved again."""
    op.create_table(
        "tool_versions",
        sa.Column("tool_id", sa.String(100), nullable=False),
        sa.Column("version", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("saved_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["tool_id"], ["tools.id"], name="fk_tool_versions_tool_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("tool_id", "version", name="pk_tool_versions"),
    )
