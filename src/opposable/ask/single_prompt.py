"""One prompt, one reply: what the team is measured against."""

import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from itertools import islice

from opposable.domain.errors import ModelError
from opposable.domain.events import Reply
from opposable.domain.messages import Message, system, user
from opposable.models.base import Model, ModelOptions
from opposable.parsers.token_escaping import BREAK
from opposable.sql.lexer import segments

PROMPT = """You write {dialect} SQL. Answer the question with one {dialect} SELECT statement over these tables.

{schema}

Reply with the SQL alone, in a ```sql block."""

_FENCES = 20
"""Fences that are tried as the end of a block."""
_OPENING = re.compile(r"```[a-zA-Z]*\s*\n")
_STATEMENT = re.compile(r"\b(?:SELECT|WITH)\b.*", re.DOTALL | re.IGNORECASE)


async def asked_once(model: Model, dialect: str, schema: str, question: str) -> tuple[str, Reply]:
    """The SQL of one reply to the schema and the question, and the reply. Raises: `ModelError`."""
    messages = (system(PROMPT.format(dialect=dialect, schema=schema)), user(question))
    reply = await reply_to(model, messages, ModelOptions(stream=False, max_tokens=400, temperature=0.0))
    return sql_of(reply.message.content), reply


async def reply_to(model: Model, messages: Sequence[Message], options: ModelOptions) -> Reply:
    """The model's whole reply. Raises: `ModelError`."""
    async with aclosing(model.stream(messages, (), options)) as parts:
        async for part in parts:
            if isinstance(part, Reply):
                return part
    raise ModelError(f"The stream of model {model.name!r} ended without a reply.")


def sql_of(text: str) -> str:
    """The SQL in a reply: of its first fenced block that holds any, else from the first SELECT or WITH on; or ""."""
    text = text.replace(BREAK, "")  # it stands in names as they were told, and in no name
    for block in _blocks(text):
        if _STATEMENT.search(block):
            return _one_statement(block)
    found = _STATEMENT.search(text)
    return _one_statement(found[0]) if found else ""


def _blocks(text: str) -> Iterator[str]:
    """What stands between fences; a fence within a quoted name or text is part of that."""
    at = 0
    while opening := _OPENING.search(text, at):
        rest = text[opening.end() :]
        ends = [found.start() for found in islice(re.finditer("```", rest), _FENCES)]
        whole = (end for end in ends if all(part.closed for part in segments(rest[:end])))
        end = next(whole, ends[0] if ends else len(rest))
        yield rest[:end]
        at = opening.end() + end + 3


def _one_statement(text: str) -> str:
    """The text up to the semicolon that ends its first statement."""
    for part in segments(text):
        if part.kind == "code" and ";" in part.text:
            return text[: part.start + part.text.index(";")].strip()
    return text.strip()
