"""One prompt, one reply: what the team is measured against."""

import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import islice

from opposable.domain.errors import ModelError
from opposable.domain.events import Reply
from opposable.domain.messages import Message, system_message, user_message
from opposable.models.base import Model, ModelOptions
from opposable.parsers.token_escaping import WORD_JOINER
from opposable.sql.lexer import split_segments

PROMPT_TEMPLATE = """You write {dialect} SQL. Answer the question with one {dialect} SELECT statement over these tables.

{schema}

Reply with the SQL alone, in a ```sql block."""

_MAX_CLOSING_FENCES = 20
"""Fences that are tried as the end of a block."""
_OPENING_FENCE_PATTERN = re.compile(r"```[a-zA-Z]*\s*\n")
_STATEMENT_PATTERN = re.compile(r"\b(?:SELECT|WITH)\b.*", re.DOTALL | re.IGNORECASE)


async def generate_sql(model: Model, dialect: str, schema: str, question: str) -> tuple[str, Reply]:
    """The SQL of one reply to the schema and the question, and the reply. Raises: `ModelError`."""
    messages = (system_message(PROMPT_TEMPLATE.format(dialect=dialect, schema=schema)), user_message(question))
    reply = await request_reply(model, messages, ModelOptions(stream=False, max_tokens=400, temperature=0.0))
    return extract_sql(reply.message.content), reply


async def request_reply(model: Model, messages: Sequence[Message], options: ModelOptions) -> Reply:
    """The model's whole reply. Raises: `ModelError`."""
    async with aclosing(model.stream(messages, (), options)) as parts:
        async for part in parts:
            if isinstance(part, Reply):
                return part
    raise ModelError(f"The stream of model {model.name!r} ended without a reply.")


def extract_sql(text: str) -> str:
    """The SQL in a reply: of its first fenced block that holds any, else from the first SELECT or WITH on; or ""."""
    text = text.replace(WORD_JOINER, "")  # it stands in names as they were told, and in no name
    for block in _iter_fenced_blocks(text):
        if _STATEMENT_PATTERN.search(block):
            return _extract_first_statement(block)
    found = _STATEMENT_PATTERN.search(text)
    return _extract_first_statement(found[0]) if found else ""


def _iter_fenced_blocks(text: str) -> Iterator[str]:
    """What stands between fences; a fence within a quoted name or text is part of that."""
    at = 0
    while opening := _OPENING_FENCE_PATTERN.search(text, at):
        rest = text[opening.end() :]
        ends = [found.start() for found in islice(re.finditer("```", rest), _MAX_CLOSING_FENCES)]
        whole = (end for end in ends if all(part.is_closed for part in split_segments(rest[:end])))
        end = next(whole, ends[0] if ends else len(rest))
        yield rest[:end]
        at = opening.end() + end + 3


def _extract_first_statement(text: str) -> str:
    """The text up to the semicolon that ends its first statement."""
    for part in split_segments(text):
        if part.kind == "code" and ";" in part.text:
            return text[: part.start + part.text.index(";")].strip()
    return text.strip()
