"""Builds the prompts for SQL and parses candidates from replies."""

from collections.abc import Sequence
from typing import Literal

import orjson

from opposable.ask.single_prompt import PROMPT_TEMPLATE, extract_sql
from opposable.ask.team.state import Candidate, TeamState
from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.models.base import ModelOptions
from opposable.sql.function_allowlist import Dialect

SYNTAX_RULES: dict[Dialect, str] = {
    "duckdb": "\n\nDates: year(d), date_trunc('month', d), strftime(d, '%Y-%m').",
    "clickhouse": "\n\nDates: toYear(d), toStartOfMonth(d), formatDateTime(d, '%Y-%m').",
}
"""Rules of dialects that differ from the common ones, after the schema."""

FIRST_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.0)
LATER_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.8)
"""Options of the requests for new SQL after a failure."""


def build_draft_messages(dialect: Dialect, state: TeamState, failed_attempts: Sequence[str] = ()) -> list[Message]:
    """Build the prompt that asks for SQL.

    The part that is the same for every question of a database comes first, so that servers can cache it. Confirmed
    examples are earlier turns of the conversation.
    """
    parts = [state.question, *state.notes]
    if failed_attempts:
        parts.append("What was tried did not do; write it another way:\n" + "\n".join(failed_attempts))
    turns = [
        message
        for example in state.examples
        for message in (user_message(example.question), assistant_message(f"```sql\n{example.sql}\n```"))
    ]
    schema = state.schema + SYNTAX_RULES.get(dialect, "")
    system = system_message(PROMPT_TEMPLATE.format(dialect=dialect, schema=schema))
    return [system, *turns, user_message("\n\n".join(parts))]


def build_correction_messages(dialect: Dialect, state: TeamState) -> list[Message]:
    """Build the prompt that asks for the smallest correction of the last candidate."""
    outcome = state.outcomes[-1]
    sql = outcome.sql or outcome.candidate.sql
    problem = outcome.problem or outcome.suspicion
    request = f"That is not right: {problem}\nChange only what is wrong, and reply with the whole corrected SQL."
    draft_messages = build_draft_messages(dialect, state)
    return [*draft_messages, assistant_message(f"```sql\n{sql}\n```"), user_message(request)]


def parse_candidates(reply: Reply, source: Literal["generator", "correction"] = "generator") -> list[Candidate]:
    """Parse the SQL of a reply: one statement, or `candidates` or `refined_sql` of a JSON object."""
    text = reply.message.content
    reply_object = _parse_json_object(text)
    listed = reply_object.get("candidates")
    if isinstance(listed, list):
        entries = [entry for entry in listed if isinstance(entry, dict) and entry.get("sql")]
        return [Candidate(extract_sql(str(entry["sql"])), str(entry.get("reason", ""))) for entry in entries[:3]]
    if reply_object.get("refined_sql"):
        sql, diagnosis = str(reply_object["refined_sql"]), str(reply_object.get("diagnosis", ""))
        return [Candidate(extract_sql(sql), diagnosis, source="correction")]
    sql = extract_sql(text)
    return [Candidate(sql, source=source)] if sql else []


def _parse_json_object(text: str) -> dict[str, object]:
    start = text.find("{")
    if start < 0:
        return {}
    try:
        value = orjson.loads(text[start : text.rfind("}") + 1])
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
