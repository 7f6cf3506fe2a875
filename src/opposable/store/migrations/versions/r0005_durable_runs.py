"""Create the tables of durable runs and batches."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Create batches, queued runs, attempts of calls and slots of rate limits."""
    _create_batches()
    _create_queued_runs()
    op.create_table(
        "call_attempts",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_call_attempts"),
    )
    op.create_index("ix_call_attempts_run_id", "call_attempts", ["run_id"])
    op.create_table(
        "rate_slots",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_rate_slots"),
    )


def _create_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("agent", JSON, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("options", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("ended_at", sa.DateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_index("ix_batches_created_at_id", "batches", ["created_at", "id"])
    op.create_index("ix_batches_status", "batches", ["status"])


def _create_queued_runs() -> None:
    op.create_table(
        "queued_runs",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("batch_id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("text", sa.Text, nullable=False, server_default=""),
        sa.Column("calls", sa.Integer, nullable=False, server_default="0"),
        sa.Column("usage", JSON),
        sa.Column("error", sa.Text, nullable=False, server_default=""),
        sa.Column("cost", sa.Double, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_queued_runs"),
        sa.UniqueConstraint("run_id", name="uq_queued_runs_run_id"),
    )
    for columns in (["batch_id", "position"], ["batch_id", "status", "position"], ["status", "batch_id"]):
        op.create_index(f"ix_queued_runs_{'_'.join(columns)}", "queued_runs", columns)
