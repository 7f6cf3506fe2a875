"""SQL for a question: the prompt, and candidates read from the reply."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.single_prompt import PROMPT as PLAIN
from opposable.ask.single_prompt import sql_of
from opposable.ask.sql_repair.date_functions import speaks_of_time
from opposable.ask.team.state import Candidate, Outcome
from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant, system, user
from opposable.models.base import ModelOptions
from opposable.sql.function_allowlist import Dialect

DATES: dict[Dialect, str] = {
    "duckdb": "Dates: year(d), date_trunc('month', d), strftime(d, '%Y-%m').",
    "sqlite": "Dates are text: strftime('%Y', d), date(d).",
    "postgres": "Dates: extract(year FROM d), date_trunc('month', d), to_char(d, 'YYYY-MM').",
}
"""How a dialect takes parts of a date, told where the question speaks of one: small models copy what they are told."""

RATIO = "For a ratio multiply by 1.0 first: integers divided give integers."

PROMPT = """You write {dialect} SQL for a database with these tables:

{schema}

Write one SELECT statement that answers the question.
- Give exactly the columns the question asks for, in that order, and no others.
- Use only tables and columns from above, and join only the tables that are needed.
Reply with the SQL alone, in a ```sql block."""

OPTIONS = ModelOptions(stream=False, max_tokens=400, temperature=0.0, alternatives=1)
UNLIKE = ModelOptions(stream=False, max_tokens=400, temperature=0.8, alternatives=1)
"""How candidates besides the first are asked for."""


_RATIO = re.compile(r"\b(?:percent\w*|proportion|ratio|rate|share)\b|百分|比例|占比|率", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Brief:
    """What is told of a question besides its words: definitions that apply, values that match, hints.

    `matches` are the real values that the question names.
    """

    schema: str
    notes: tuple[str, ...] = ()
    matches: tuple[ValueMatch, ...] = ()


def draft_messages(dialect: Dialect, brief: Brief, question: str, failed: Sequence[str] = ()) -> list[Message]:
    """Asks for SQL. What stays the same for a database stands first.

    Where something failed, that is told, and the asking takes another form: in the same one a small model writes the
    same again.
    """
    parts = [question, *brief.notes, *_rules(dialect, question)]
    if failed:
        parts.append("What was tried did not do; write it another way:\n" + "\n".join(failed))
        return [system(PLAIN.format(dialect=dialect, schema=brief.schema)), user("\n\n".join(parts))]
    return [system(PROMPT.format(dialect=dialect, schema=brief.schema)), user("\n\n".join(parts))]


def _rules(dialect: Dialect, question: str) -> list[str]:
    """What a dialect does its own way, as far as the question's words call for it."""
    told = [DATES[dialect]] if speaks_of_time(question) else []
    return [*told, *([RATIO] if dialect != "duckdb" and _RATIO.search(question) else [])]


def correction_messages(dialect: Dialect, brief: Brief, question: str, outcome: Outcome) -> list[Message]:
    """Asks for the smallest change that puts one candidate right."""
    asked = draft_messages(dialect, brief, question)
    sql = outcome.sql or outcome.candidate.sql
    told = outcome.problem or outcome.suspicion
    return [
        *asked,
        assistant(f"```sql\n{sql}\n```"),
        user(f"That is not right: {told}\nChange only what is wrong, and reply with the whole corrected SQL."),
    ]


def candidates_of(
    reply: Reply, reason: str, source: Literal["generator", "correction"] = "generator"
) -> list[Candidate]:
    """The SQL in a reply: one statement, or the `candidates` or `refined_sql` of a JSON object."""
    text = reply.message.content
    told = _as_json(text)
    listed = told.get("candidates")
    if isinstance(listed, list):
        each = [one for one in listed if isinstance(one, dict) and one.get("sql")]
        return [Candidate(sql_of(str(one["sql"])), str(one.get("reason", reason))) for one in each[:3]]
    if told.get("refined_sql"):
        return [Candidate(sql_of(str(told["refined_sql"])), str(told.get("diagnosis", reason)), None, "correction")]
    sql = sql_of(text)
    return [Candidate(sql, reason, certainty(reply), source)] if sql else []


def certainty(reply: Reply) -> float | None:
    """How likely the reply's own words were, as the geometric mean over its tokens; None where it is not known."""
    logs = [token.alternatives[0][1] for token in reply.tokens if token.alternatives]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _as_json(text: str) -> dict[str, object]:
    start = text.find("{")
    if start < 0:
        return {}
    try:
        told = orjson.loads(text[start : text.rfind("}") + 1])
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}
