"""Create the first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TEXTS = sa.JSON(none_as_null=True).with_variant(postgresql.ARRAY(sa.Text()), "postgresql")


def upgrade() -> None:
    """Create the tables and indexes."""
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    moment = sa.text("timezone('utc', now())" if on_postgresql else "CURRENT_TIMESTAMP")
    op.create_table(
        "agents",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
    )
    op.create_index("ix_agents_updated_at_id", "agents", ["updated_at", "id"], unique=False)
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.String(20), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("scopes", TEXTS, nullable=False),
        sa.Column("rate_limit", JSON, nullable=True),
        sa.Column("token_budget", sa.BigInteger(), nullable=True),
        sa.Column("tokens_used", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("last_used_at", sa.DateTime(), nullable=True),
        sa.Column("revoked_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("sha256", name="uq_api_keys_sha256"),
    )
    op.create_table(
        "approvals",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("arguments", JSON, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("decided_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_approvals"),
    )
    op.create_index("ix_approvals_owner_created_at", "approvals", ["owner", "created_at"], unique=False)
    op.create_index("ix_approvals_run_id_call_id", "approvals", ["run_id", "call_id"], unique=False)
    op.create_index("ix_approvals_status_created_at_id", "approvals", ["status", "created_at", "id"], unique=False)
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("messages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index(
        "ix_conversations_owner_updated_at_id", "conversations", ["owner", "updated_at", "id"], unique=False
    )
    op.create_index("ix_conversations_updated_at_id", "conversations", ["updated_at", "id"], unique=False)
    op.create_table(
        "failures",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("tool_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_seen", sa.DateTime(), nullable=False),
        sa.Column("last_seen", sa.DateTime(), nullable=False),
        sa.Column("correction", JSON, nullable=True),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_failures"),
    )
    op.create_index("ix_failures_last_seen_id", "failures", ["last_seen", "id"], unique=False)
    op.create_index(
        "ix_failures_tool_id_action_fingerprint", "failures", ["tool_id", "action", "fingerprint"], unique=False
    )
    op.create_index("ix_failures_tool_id_last_seen", "failures", ["tool_id", "last_seen"], unique=False)
    op.create_table(
        "mcp_pins",
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("definition", JSON, nullable=False),
        sa.Column("pinned_at", sa.DateTime(), nullable=False),
        sa.Column("pending_sha256", sa.String(64), nullable=False),
        sa.Column("pending", JSON, nullable=True),
        sa.PrimaryKeyConstraint("server_id", "tool", name="pk_mcp_pins"),
    )
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sequence", name="pk_run_events"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("tool_calls", sa.Integer(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("ended_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_agent_id_started_at", "runs", ["agent_id", "started_at"], unique=False)
    op.create_index("ix_runs_conversation_id", "runs", ["conversation_id"], unique=False)
    op.create_index("ix_runs_owner_started_at", "runs", ["owner", "started_at"], unique=False)
    op.create_index("ix_runs_started_at_id", "runs", ["started_at", "id"], unique=False)
    op.create_index("ix_runs_status_started_at", "runs", ["status", "started_at"], unique=False)
    op.create_table(
        "tool_executions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("arguments", JSON, nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("handle", sa.Text(), nullable=False),
        sa.Column("failure", sa.String(20), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("repairs", TEXTS, nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tool_executions"),
    )
    op.create_index("ix_tool_executions_agent_id_at", "tool_executions", ["agent_id", "at"], unique=False)
    op.create_index("ix_tool_executions_at_id", "tool_executions", ["at", "id"], unique=False)
    op.create_index("ix_tool_executions_conversation_id_at", "tool_executions", ["conversation_id", "at"], unique=False)
    op.create_index(
        "ix_tool_executions_failure_at",
        "tool_executions",
        ["failure", "at"],
        unique=False,
        sqlite_where=sa.text("failure IS NOT NULL"),
        postgresql_where=sa.text("failure IS NOT NULL"),
    )
    op.create_index("ix_tool_executions_run_id", "tool_executions", ["run_id"], unique=False)
    op.create_index("ix_tool_executions_tool_id_at", "tool_executions", ["tool_id", "at"], unique=False)
    op.create_table(
        "tools",
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("type", sa.String(20), server_default="invokable", nullable=False),
        sa.Column("display_name", sa.String(200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("category", sa.String(50), server_default="custom", nullable=True),
        sa.Column("endpoint", JSON, nullable=False),
        sa.Column("parameters", JSON, nullable=False),
        sa.Column("response_transform", JSON, nullable=True),
        sa.Column("rate_limit", JSON, nullable=True),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=True),
        sa.Column("version", sa.String(20), server_default="1.0.0", nullable=True),
        sa.Column("tags", TEXTS, nullable=True),
        sa.Column("created_at", sa.DateTime(), server_default=moment, nullable=True),
        sa.Column("updated_at", sa.DateTime(), server_default=moment, nullable=True),
        sa.Column("tool_type", sa.String(20), server_default="http", nullable=False),
        sa.Column("spec", JSON, server_default=sa.text("'{}'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tools"),
        sa.UniqueConstraint("name", name="uq_tools_name"),
    )
    op.create_table(
        "agent_tools",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("tool_id", sa.String(100), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=True),
        sa.Column("config", JSON, nullable=True),
        sa.Column("created_at", sa.DateTime(), server_default=moment, nullable=True),
        sa.Column("updated_at", sa.DateTime(), server_default=moment, nullable=True),
        sa.ForeignKeyConstraint(["tool_id"], ["tools.id"], name="fk_agent_tools_tool_id"),
        sa.PrimaryKeyConstraint("id", name="pk_agent_tools"),
        sa.UniqueConstraint("agent_id", "tool_id", name="uq_agent_tools_agent_id_tool_id"),
    )
    op.create_index("ix_agent_tools_tool_id", "agent_tools", ["tool_id"], unique=False)
    op.create_table(
        "agent_versions",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_agent_versions_agent_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("agent_id", "version", name="pk_agent_versions"),
    )
    op.create_table(
        "messages",
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_messages_conversation_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("conversation_id", "position", name="pk_messages"),
    )
