"""SQL for a question: the prompt, and candidates read from the reply."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.single_prompt import PROMPT_TEMPLATE as PLAIN
from opposable.ask.single_prompt import extract_sql
from opposable.ask.sql_repair.date_functions import mentions_time
from opposable.ask.team.state import Candidate, CandidateOutcome
from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.models.base import ModelOptions
from opposable.sql.function_allowlist import Dialect

DATE_HINTS: dict[Dialect, str] = {
    "duckdb": "Dates: year(d), date_trunc('month', d), strftime(d, '%Y-%m').",
    "sqlite": "Dates are text: strftime('%Y', d), date(d).",
    "postgres": "Dates: extract(year FROM d), date_trunc('month', d), to_char(d, 'YYYY-MM').",
}
"""How a dialect takes parts of a date, told where the question speaks of one: small models copy what they are told."""

RATIO_HINT = "For a ratio multiply by 1.0 first: integers divided give integers."

PROMPT = """You write {dialect} SQL for a database with these tables:

{schema}

Write one SELECT statement that answers the question.
- Give exactly the columns the question asks for, in that order, and no others.
- Use only tables and columns from above, and join only the tables that are needed.
Reply with the SQL alone, in a ```sql block."""

FIRST_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.0, top_logprobs=1)
LATER_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.8, top_logprobs=1)
"""How candidates besides the first are asked for."""


_RATIO_WORDS = re.compile(r"\b(?:percent\w*|proportion|ratio|rate|share)\b|百分|比例|占比|率", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Brief:
    """What is told of a question besides its words: definitions that apply, values that match, hints.

    `matches` are the real values that the question names.
    """

    schema: str
    notes: tuple[str, ...] = ()
    value_matches: tuple[ValueMatch, ...] = ()


def build_draft_messages(
    dialect: Dialect, brief: Brief, question: str, failed_attempts: Sequence[str] = ()
) -> list[Message]:
    """Asks for SQL. What stays the same for a database stands first.

    Where something failed, that is told, and the asking takes another form: in the same one a small model writes the
    same again.
    """
    parts = [question, *brief.notes, *_get_dialect_hints(dialect, question)]
    if failed_attempts:
        parts.append("What was tried did not do; write it another way:\n" + "\n".join(failed_attempts))
        return [system_message(PLAIN.format(dialect=dialect, schema=brief.schema)), user_message("\n\n".join(parts))]
    return [system_message(PROMPT.format(dialect=dialect, schema=brief.schema)), user_message("\n\n".join(parts))]


def _get_dialect_hints(dialect: Dialect, question: str) -> list[str]:
    """What a dialect does its own way, as far as the question's words call for it."""
    told = [DATE_HINTS[dialect]] if mentions_time(question) else []
    return [*told, *([RATIO_HINT] if dialect != "duckdb" and _RATIO_WORDS.search(question) else [])]


def build_correction_messages(
    dialect: Dialect, brief: Brief, question: str, outcome: CandidateOutcome
) -> list[Message]:
    """Asks for the smallest change that puts one candidate right."""
    asked = build_draft_messages(dialect, brief, question)
    sql = outcome.sql or outcome.candidate.sql
    told = outcome.problem or outcome.suspicion
    return [
        *asked,
        assistant_message(f"```sql\n{sql}\n```"),
        user_message(f"That is not right: {told}\nChange only what is wrong, and reply with the whole corrected SQL."),
    ]


def parse_candidates(
    reply: Reply, reason: str, source: Literal["generator", "correction"] = "generator"
) -> list[Candidate]:
    """The SQL in a reply: one statement, or the `candidates` or `refined_sql` of a JSON object."""
    text = reply.message.content
    told = _parse_json_object(text)
    listed = told.get("candidates")
    if isinstance(listed, list):
        each = [one for one in listed if isinstance(one, dict) and one.get("sql")]
        return [Candidate(extract_sql(str(one["sql"])), str(one.get("reason", reason))) for one in each[:3]]
    if told.get("refined_sql"):
        return [
            Candidate(extract_sql(str(told["refined_sql"])), str(told.get("diagnosis", reason)), None, "correction")
        ]
    sql = extract_sql(text)
    return [Candidate(sql, reason, compute_certainty(reply), source)] if sql else []


def compute_certainty(reply: Reply) -> float | None:
    """How likely the reply's own words were, as the geometric mean over its tokens; None where it is not known."""
    logs = [token.alternatives[0][1] for token in reply.tokens if token.alternatives]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _parse_json_object(text: str) -> dict[str, object]:
    start = text.find("{")
    if start < 0:
        return {}
    try:
        told = orjson.loads(text[start : text.rfind("}") + 1])
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}
