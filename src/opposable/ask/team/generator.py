"""Builds the prompts of the team and parses the replies."""

import re
from collections.abc import Sequence
from typing import Literal

from opposable.ask.single_prompt import PROMPT_TEMPLATE, THOUGHT_PATTERN, extract_sql
from opposable.ask.team.state import Candidate, TeamState
from opposable.domain.events import CUT_OFF, Reply
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.models.base import ModelOptions
from opposable.parsers.token_escaping import WORD_JOINER, escape_special_tokens
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import to_one_line

SYNTAX_RULES: dict[Dialect, str] = {
    "duckdb": "\n\nDates: year(d), date_trunc('month', d), strftime(d, '%Y-%m').",
    "clickhouse": "\n\nDates: toYear(d), toStartOfMonth(d), formatDateTime(d, '%Y-%m').",
}
"""Rules of dialects that differ from the common ones, after the schema."""

FIRST_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.0)
LATER_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.8)
"""Options of the requests for new SQL after a failure. The limit of tokens is for small models: see `Team`."""
REWRITE_OPTIONS = ModelOptions(stream=False, max_tokens=200, temperature=0.0)

MAX_EARLIER_QUESTIONS = 5
"""The limit of earlier questions in the prompt; the latest are used."""
_MAX_QUESTION_CHARACTERS = 500

_REWRITE_INSTRUCTIONS = (
    "You complete follow-up questions about data. Write the last question so that it can be understood without the "
    "earlier ones: add what it leaves out, and change nothing else. If it is already complete, repeat it. "
    "Use the language of the last question. Reply with the question alone."
)


def build_rewrite_messages(question: str, earlier_questions: Sequence[str]) -> list[Message]:
    """Build the prompt that asks for the complete question of a follow-up question, such as "and by month?"."""
    lines = [to_one_line(text, _MAX_QUESTION_CHARACTERS) for text in earlier_questions[-MAX_EARLIER_QUESTIONS:]]
    earlier = "\n".join(f"- {line}" for line in lines)
    request = f"Earlier questions:\n{earlier}\n\nLast question: {question}"
    return [system_message(_REWRITE_INSTRUCTIONS), user_message(request)]


def parse_rewrite(reply: Reply, question: str) -> str:
    """Return the complete question of a reply, or `question` if the reply has none or was cut off."""
    complete = to_one_line(THOUGHT_PATTERN.sub("", reply.message.content), _MAX_QUESTION_CHARACTERS + len(question))
    complete = complete.removeprefix("Last question:").strip()
    quoted = re.fullmatch(r"([\"'`])((?:(?!\1).)+)\1|“([^“”]+)”", complete)
    complete = (quoted[2] or quoted[3]) if quoted else complete
    is_new = complete and complete != to_one_line(question, len(complete) + len(question))
    return complete if is_new and reply.finish not in CUT_OFF else question


def build_draft_messages(dialect: Dialect, state: TeamState, failed_attempts: Sequence[str] = ()) -> list[Message]:
    """Build the prompt that asks for SQL.

    The part that is the same for every question of a database comes first, so that servers can cache it. Confirmed
    examples are earlier turns of the conversation.
    """
    parts = [state.follow_up, state.question, *state.notes] if state.follow_up else [state.question, *state.notes]
    if failed_attempts:
        lines = ["What was tried did not do; write it another way:", *failed_attempts]
        parts.append(escape_special_tokens("\n".join(lines)))
    turns = [
        message
        for example in state.examples
        for message in (user_message(example.question), assistant_message(f"```sql\n{example.sql}\n```"))
    ]
    system = PROMPT_TEMPLATE.format(dialect=dialect, schema=state.schema + SYNTAX_RULES.get(dialect, ""))
    return [system_message(system), *turns, user_message("\n\n".join(parts))]


def build_correction_messages(dialect: Dialect, state: TeamState, *, assisted: bool = False) -> list[Message]:
    """Build the prompt that asks for the smallest correction; without `assisted`, an empty result may be right."""
    outcome = state.outcomes[-1]
    sql = outcome.sql or outcome.candidate.sql
    request = f"The result is empty: {outcome.suspicion}.\nCorrect the SQL if another value is meant, else repeat it."
    if problem := outcome.problem or (assisted and outcome.suspicion):
        request = f"That is not right: {problem}\nChange only what is wrong, and reply with the whole corrected SQL."
    draft_messages = build_draft_messages(dialect, state)
    return [*draft_messages, assistant_message(f"```sql\n{sql}\n```"), user_message(escape_special_tokens(request))]


def parse_candidate(
    reply: Reply, dialect: Dialect, source: Literal["generator", "correction"] = "generator", *, in_prose: bool = True
) -> Candidate | None:
    """Parse the SQL of a reply, or return None; SQL at the end of a reply that was cut off may lack its own end."""
    text = reply.message.content
    sql = extract_sql(text, dialect, reads_prose=in_prose)
    is_incomplete = reply.finish in CUT_OFF and text.replace(WORD_JOINER, "").rstrip().endswith(sql)
    return Candidate(sql, source=source) if sql and not is_incomplete else None
