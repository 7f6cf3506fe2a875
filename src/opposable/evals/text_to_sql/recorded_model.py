"""Records the replies of a model, so that evaluations that share prompts request each reply once."""

import hashlib
import sqlite3
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, aclosing, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from opposable.domain.errors import OpposableError
from opposable.domain.events import ModelEvent, Reply, Token
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ModelWrapper


class RecordedModel(ModelWrapper):
    """A model whose text replies are stored in a SQLite file and returned again for the same request.

    Args:
        model: The model that replies to new requests.
        path: The file; it is created if it does not exist.

    Raises:
        OpposableError: The file cannot be used.
    """

    def __init__(self, model: Model, path: Path) -> None:
        super().__init__(model)
        self._path = path
        with self._report_errors(), ExitStack() as stack:
            connection = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            connection.execute("CREATE TABLE IF NOT EXISTS reply (request TEXT PRIMARY KEY, reply BLOB)")
            stack.pop_all()
        self._connection = connection

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the recorded reply of a request, or the reply of the model.

        Raises: `ModelError`; `OpposableError` if the file cannot be read or written.
        """
        key = _compute_key(self.name, messages, options)
        with self._report_errors():
            recorded = self._connection.execute("SELECT reply FROM reply WHERE request = ?", (key,)).fetchone()
        if recorded is not None:
            yield _parse_reply(orjson.loads(recorded[0]))
            return
        async with aclosing(self.inner.stream(messages, tools, options)) as events:
            async for event in events:
                if isinstance(event, Reply):
                    row = (key, _format_reply(event))
                    with self._report_errors():
                        self._connection.execute("INSERT OR IGNORE INTO reply VALUES (?, ?)", row)
                yield event

    async def aclose(self) -> None:
        """Close the file and the model."""
        self._connection.close()
        await super().aclose()

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OpposableError(f"Cannot use {self._path} for recorded replies: {error}.") from error


def _compute_key(name: str, messages: Sequence[Message], options: ModelOptions) -> str:
    request = [name, [(message.role, message.content) for message in messages], asdict(options)]
    return hashlib.sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _format_reply(reply: Reply) -> bytes:
    return orjson.dumps(
        {
            "content": reply.message.content,
            "finish": reply.finish,
            "usage": [reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.requests],
            "tokens": [(token.text, token.alternatives) for token in reply.tokens],
        }
    )


def _parse_reply(record: dict[str, Any]) -> Reply:
    tokens = tuple(
        Token(text, tuple((other, probability) for other, probability in alternatives))
        for text, alternatives in record["tokens"]
    )
    return Reply(assistant_message(record["content"]), record["finish"], Usage(*record["usage"]), tokens)
