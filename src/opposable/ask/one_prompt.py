"""One prompt, one reply: what the team is measured against."""

import re
from collections.abc import Sequence
from contextlib import aclosing

from opposable.domain.errors import ModelError
from opposable.domain.events import Reply
from opposable.domain.messages import Message, system, user
from opposable.models.base import Model, ModelOptions

PROMPT = """You write {dialect} SQL. Answer the question with one {dialect} SELECT statement over these tables.

{schema}

Reply with the SQL alone, in a ```sql block."""

_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)(?:```|\Z)", re.DOTALL)
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
    for block in _FENCE.findall(text):
        if _STATEMENT.search(block):
            return _one_statement(block)
    found = _STATEMENT.search(text)
    return _one_statement(found[0]) if found else ""


def _one_statement(text: str) -> str:
    """The text up to the semicolon that ends its first statement."""
    quote = ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char == ";":
            return text[:at].strip()
    return text.strip()
