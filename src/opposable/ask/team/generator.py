"""Builds the prompts for SQL and parses candidates from replies."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.single_prompt import PROMPT_TEMPLATE as PLAIN
from opposable.ask.single_prompt import extract_sql
from opposable.ask.team.state import Candidate, CandidateOutcome
from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.domain.records import QueryExample
from opposable.models.base import ModelOptions
from opposable.sql.function_allowlist import Dialect

DATE_HINTS: dict[Dialect, str] = {
    "duckdb": "Dates: year(d), date_trunc('month', d), strftime(d, '%Y-%m').",
    "sqlite": "Dates are text: strftime('%Y', d), date(d).",
    "postgres": "Dates: extract(year FROM d), date_trunc('month', d), to_char(d, 'YYYY-MM').",
}
"""The date functions of each dialect; only in prompts of questions about time, since small models copy hints."""

RATIO_HINT = "For a ratio multiply by 1.0 first: integers divided give integers."

PROMPT = """You write {dialect} SQL for a database with these tables:

{schema}

Write one SELECT statement that answers the question.
- Give exactly the columns the question asks for, in that order, and no others.
- Use only tables and columns from above, and join only the tables that are needed.
Reply with the SQL alone, in a ```sql block."""

FIRST_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.0, top_logprobs=1)
LATER_DRAFT_OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.8, top_logprobs=1)
"""Options of the requests for new SQL after a failure."""

_TIME_WORDS = re.compile(
    r"\b(?:years?|yearly|annual\w*|months?|monthly|quarters?|weeks?|weekly|days?|daily|hours?|minutes?|times?|decades?"
    r"|centur\w+|19\d\d|20\d\d)\b|年(?![龄级薪纪])|月(?![薪租])|季|周|星期|日(?!期)|天|小时|分钟|时间|时段|世纪|19\d\d|20\d\d",
    re.IGNORECASE,
)
_RATIO_WORDS = re.compile(r"\b(?:percent\w*|proportion|ratio|rate|share)\b|百分|比例|占比|率", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Brief:
    """The context of a question in the SQL prompt.

    Attributes:
        schema: The schema as text.
        notes: Definitions and values that concern the question.
        value_matches: The values of the database that the question names.
        examples: Similar questions whose SQL a person confirmed.
    """

    schema: str
    notes: tuple[str, ...] = ()
    value_matches: tuple[ValueMatch, ...] = ()
    examples: tuple[QueryExample, ...] = ()


def build_draft_messages(
    dialect: Dialect, brief: Brief, question: str, failed_attempts: Sequence[str] = ()
) -> list[Message]:
    """Build the prompt that asks for SQL.

    The part that is the same for every question of a database comes first, so that servers can cache it. Confirmed
    examples are earlier turns of the conversation. After failed
    attempts the prompt has another form, because a small model repeats its SQL for the same prompt.
    """
    parts = [question, *brief.notes, *_get_dialect_hints(dialect, question)]
    if failed_attempts:
        parts.append("What was tried did not do; write it another way:\n" + "\n".join(failed_attempts))
    template = PLAIN if failed_attempts else PROMPT
    turns = [
        message
        for example in brief.examples
        for message in (user_message(example.question), assistant_message(f"```sql\n{example.sql}\n```"))
    ]
    system = system_message(template.format(dialect=dialect, schema=brief.schema))
    return [system, *turns, user_message("\n\n".join(parts))]


def _get_dialect_hints(dialect: Dialect, question: str) -> list[str]:
    """Return the hints on the dialect that the words of the question require."""
    date_hints = [DATE_HINTS[dialect]] if _TIME_WORDS.search(question) else []
    return [*date_hints, *([RATIO_HINT] if dialect != "duckdb" and _RATIO_WORDS.search(question) else [])]


def build_correction_messages(
    dialect: Dialect, brief: Brief, question: str, outcome: CandidateOutcome
) -> list[Message]:
    """Build the prompt that asks for the smallest correction of a candidate."""
    draft_messages = build_draft_messages(dialect, brief, question)
    sql = outcome.sql or outcome.candidate.sql
    problem = outcome.problem or outcome.suspicion
    return [
        *draft_messages,
        assistant_message(f"```sql\n{sql}\n```"),
        user_message(
            f"That is not right: {problem}\nChange only what is wrong, and reply with the whole corrected SQL."
        ),
    ]


def parse_candidates(
    reply: Reply, reason: str, source: Literal["generator", "correction"] = "generator"
) -> list[Candidate]:
    """Parse the SQL of a reply: one statement, or `candidates` or `refined_sql` of a JSON object."""
    text = reply.message.content
    reply_object = _parse_json_object(text)
    listed = reply_object.get("candidates")
    if isinstance(listed, list):
        entries = [entry for entry in listed if isinstance(entry, dict) and entry.get("sql")]
        return [Candidate(extract_sql(str(entry["sql"])), str(entry.get("reason", reason))) for entry in entries[:3]]
    if reply_object.get("refined_sql"):
        return [
            Candidate(
                extract_sql(str(reply_object["refined_sql"])),
                str(reply_object.get("diagnosis", reason)),
                None,
                "correction",
            )
        ]
    sql = extract_sql(text)
    return [Candidate(sql, reason, compute_certainty(reply), source)] if sql else []


def compute_certainty(reply: Reply) -> float | None:
    """Return the geometric mean of the reply's token probabilities, or None if they are unknown."""
    log_probabilities = [token.alternatives[0][1] for token in reply.tokens if token.alternatives]
    return math.exp(sum(log_probabilities) / len(log_probabilities)) if log_probabilities else None


def _parse_json_object(text: str) -> dict[str, object]:
    start = text.find("{")
    if start < 0:
        return {}
    try:
        value = orjson.loads(text[start : text.rfind("}") + 1])
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
