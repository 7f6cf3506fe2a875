"""Table definitions of the current schema."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    MetaData,
    Table,
    UniqueConstraint,
    false,
    literal_column,
    text,
    true,
)

from opposable.store.column_types import CleanString, CleanText, JsonColumn, TextList, UtcDateTime, utc_now

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

tools = Table(
    "tools",
    metadata,
    Column("id", CleanString(100), primary_key=True),
    Column("name", CleanString(100), nullable=False, unique=True),
    Column("type", CleanString(20), nullable=False, server_default="invokable"),
    Column("display_name", CleanString(200), nullable=False),
    Column("description", CleanText, nullable=False),
    Column("category", CleanString(50), server_default="custom"),
    Column("endpoint", JsonColumn, nullable=False),
    Column("parameters", JsonColumn, nullable=False),
    Column("response_transform", JsonColumn),
    Column("rate_limit", JsonColumn),
    Column("enabled", Boolean, server_default=true()),
    Column("version", CleanString(20), server_default="1.0.0"),
    Column("tags", TextList),
    Column("created_at", UtcDateTime, server_default=utc_now()),
    Column("updated_at", UtcDateTime, server_default=utc_now()),
    Column("tool_type", CleanString(20), nullable=False, server_default="http"),
    Column("spec", JsonColumn, nullable=False, server_default=text("'{}'")),
)

tool_versions = Table(
    "tool_versions",
    metadata,
    Column("tool_id", CleanString(100), ForeignKey("tools.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("spec", JsonColumn, nullable=False),
    Column("saved_by", CleanText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("name", CleanText, nullable=False),
    Column("spec", JsonColumn, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "updated_at", "id"),
)

agent_versions = Table(
    "agent_versions",
    metadata,
    Column("agent_id", CleanString(36), ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("spec", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

agent_tools = Table(
    "agent_tools",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("agent_id", CleanString(36), nullable=False),
    Column("tool_id", CleanString(100), ForeignKey("tools.id"), nullable=False, index=True),
    Column("enabled", Boolean, server_default=true()),
    Column("config", JsonColumn),
    Column("created_at", UtcDateTime, server_default=utc_now()),
    Column("updated_at", UtcDateTime, server_default=utc_now()),
    UniqueConstraint("agent_id", "tool_id"),
)

tool_executions = Table(
    "tool_executions",
    metadata,
    Column("id", CleanText, primary_key=True),
    Column("run_id", CleanText, nullable=False, index=True),
    Column("call_id", CleanText, nullable=False),
    Column("tool_id", CleanText, nullable=False),
    Column("name", CleanText, nullable=False),
    Column("agent_id", CleanText, nullable=False),
    Column("conversation_id", CleanText, nullable=False),
    Column("trace_id", CleanText, nullable=False),
    Column("arguments", JsonColumn, nullable=False),
    Column("result", CleanText, nullable=False),
    Column("handle", CleanText, nullable=False),
    Column("failure", CleanString(20)),
    Column("attempts", Integer, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("repairs", TextList, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("seconds", Double, nullable=False),
    Index(None, "at", "id"),
    Index(None, "tool_id", "at"),
    Index(None, "agent_id", "at"),
    Index(None, "conversation_id", "at"),
)
Index(
    "ix_tool_executions_failure_at",
    tool_executions.c.failure,
    tool_executions.c.at,
    sqlite_where=tool_executions.c.failure.is_not(None),
    postgresql_where=tool_executions.c.failure.is_not(None),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", CleanText, primary_key=True),
    Column("owner", CleanText, nullable=False),
    Column("agent_id", CleanText, nullable=False),
    Column("title", CleanText, nullable=False),
    Column("messages", Integer, nullable=False, server_default="0"),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "owner", "updated_at", "id"),
    Index(None, "updated_at", "id"),
)

messages = Table(
    "messages",
    metadata,
    Column("conversation_id", CleanText, ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("role", CleanString(10), nullable=False),
    Column("body", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("turn_id", CleanText, nullable=False, server_default=""),
)

responses = Table(
    "responses",
    metadata,
    Column("id", CleanText, primary_key=True),
    Column("owner", CleanText, nullable=False),
    Column("model", CleanText, nullable=False),
    Column("url", CleanText, nullable=False),
    Column("items", JsonColumn, nullable=False),
    Column("body", JsonColumn),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "created_at", "id"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", CleanText, primary_key=True),
    Column("agent_id", CleanText, nullable=False),
    Column("conversation_id", CleanText, nullable=False, index=True),
    Column("owner", CleanText, nullable=False),
    Column("trace_id", CleanText, nullable=False),
    Column("status", CleanString(20), nullable=False),
    Column("task", CleanText, nullable=False),
    Column("text", CleanText, nullable=False),
    Column("reason", CleanText, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("turns", Integer, nullable=False),
    Column("tool_calls", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False, server_default=false()),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("worker", CleanText, nullable=False, server_default=""),
    Index(None, "started_at", "id"),
    Index(None, "owner", "started_at"),
    Index(None, "agent_id", "started_at"),
    Column("kind", CleanString(20), nullable=False, server_default="chat"),
    Index(None, "status", "started_at"),
    Index(None, "kind", "started_at"),
    Column("model", CleanText, nullable=False, server_default=""),
)

workers = Table(
    "workers",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("seen_at", UtcDateTime, nullable=False),
)

run_events = Table(
    "run_events",
    metadata,
    Column("run_id", CleanText, primary_key=True),  # no foreign key: events may be written before their run
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("kind", CleanText, nullable=False),
    Column("data", JsonColumn, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

failures = Table(
    "failures",
    metadata,
    Column("id", CleanString(32), primary_key=True),
    Column("scope", CleanText, nullable=False),
    Column("tool_id", CleanText, nullable=False),
    Column("action", CleanText, nullable=False),
    Column("kind", CleanString(20), nullable=False),
    Column("fingerprint", CleanText, nullable=False),
    Column("message", CleanText, nullable=False),
    Column("count", Integer, nullable=False),
    Column("first_seen", UtcDateTime, nullable=False),
    Column("last_seen", UtcDateTime, nullable=False),
    Column("correction", JsonColumn),
    Column("pinned", Boolean, nullable=False),
    Index(None, "tool_id", "action", "fingerprint"),
    Index(None, "tool_id", "last_seen"),
    Index(None, "last_seen", "id"),
)


def build_informative_condition(table: FromClause) -> ColumnElement[bool]:
    """Build the condition for failures worth reporting: repeated, corrected or pinned.

    The condition has no parameters, so that the database matches it with the condition of the partial index.
    """
    return table.c.correction.is_not(None) | (table.c.count >= literal_column("2")) | table.c.pinned


Index(
    "ix_failures_teaching",
    failures.c.tool_id,
    failures.c.scope,
    failures.c.last_seen,
    sqlite_where=build_informative_condition(failures),
    postgresql_where=build_informative_condition(failures),
)
Index(
    "ix_failures_pinned",
    failures.c.tool_id,
    failures.c.scope,
    sqlite_where=text("pinned = 1"),  # as queries compare it
    postgresql_where=failures.c.pinned,
)

mcp_pins = Table(
    "mcp_pins",
    metadata,
    Column("server_id", CleanText, primary_key=True),
    Column("tool", CleanText, primary_key=True),
    Column("sha256", CleanString(64), nullable=False),
    Column("definition", JsonColumn, nullable=False),
    Column("pinned_at", UtcDateTime, nullable=False),
    Column("pending_sha256", CleanString(64), nullable=False),
    Column("pending", JsonColumn),
)

query_examples = Table(
    "query_examples",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("database", CleanText, nullable=False),
    Column("question", CleanText, nullable=False),
    Column("sql", CleanText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index(None, "database", "created_at"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("name", CleanText, nullable=False),
    Column("prefix", CleanString(20), nullable=False),
    Column("sha256", CleanString(64), nullable=False, unique=True),
    Column("scopes", TextList, nullable=False),
    Column("rate_limit", JsonColumn),
    Column("token_budget", BigInteger),
    Column("tokens_used", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("last_used_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
)

model_usage = Table(
    "model_usage",
    metadata,
    Column("key_id", CleanText, primary_key=True),
    Column("model", CleanText, primary_key=True),
    Column("day", CleanString(10), primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False, server_default="0"),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("run_id", CleanText, nullable=False),
    Column("call_id", CleanText, nullable=False),
    Column("tool_id", CleanText, nullable=False),
    Column("agent_id", CleanText, nullable=False),
    Column("conversation_id", CleanText, nullable=False),
    Column("owner", CleanText, nullable=False),
    Column("arguments", JsonColumn, nullable=False),
    Column("sha256", CleanString(64), nullable=False),
    Column("status", CleanString(20), nullable=False),
    Column("decided_by", CleanText, nullable=False),
    Column("reason", CleanText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("decided_at", UtcDateTime),
    Index(None, "run_id", "call_id"),
    Index(None, "status", "created_at", "id"),
    Index(None, "owner", "created_at"),
)

batches = Table(
    "batches",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("agent", JsonColumn, nullable=False),
    Column("owner", CleanText, nullable=False),
    Column("status", CleanString(20), nullable=False),
    Column("options", JsonColumn, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Index(None, "created_at", "id"),
    Index(None, "status"),
)

queued_runs = Table(
    "queued_runs",
    metadata,
    Column("id", CleanString(36), primary_key=True),
    Column("run_id", CleanString(64), nullable=False, unique=True),
    Column("batch_id", CleanString(36), nullable=False),  # "" for a run that belongs to no batch
    Column("position", Integer, nullable=False),
    Column("task_id", CleanText, nullable=False),
    Column("request", JsonColumn, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", CleanString(20), nullable=False),
    Column("text", CleanText, nullable=False, server_default=""),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("usage", JsonColumn),
    Column("error", CleanText, nullable=False, server_default=""),
    Column("cost", Double, nullable=False, server_default="0"),
    Index(None, "batch_id", "position"),
    Index(None, "batch_id", "status", "position"),
    Index(None, "status", "batch_id"),
)

call_attempts = Table(
    "call_attempts",
    metadata,
    Column("key", CleanText, primary_key=True),
    Column("run_id", CleanText, nullable=False, index=True),
    Column("attempts", Integer, nullable=False),
)

rate_slots = Table(
    "rate_slots",
    metadata,
    Column("key", CleanText, primary_key=True),
    Column("next_at", Double, nullable=False),  # seconds since 1970 on the clock of the database
)
