"""Measures what each step of the Python protocol is worth on the Berkeley questions.

The replies of the embedded model are stored in the user's cache. A later run asks it only what is not stored, so that
changed steps can be compared on the same replies.
"""

import argparse
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from berkeley_questions import BerkeleyQuestion, ToolCallPair, fetch_wheel, load_checker, read_questions

from opposable.domain.errors import ModelError
from opposable.domain.events import ModelEvent, Reply, Token
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.factory import create_unwrapped_model
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.python_protocol.pipeline import OPTIONAL_STEPS
from opposable.web.gateway.request import parse_body
from opposable.web.gateway.tool_calls import triage_calls

Results = dict[str, list[bool]]
"""Whether each answer is right, by category."""


class RecordedModel:
    """A model whose replies are stored in a file. Answers without tools are left out."""

    extra_parameters = frozenset({"grammar"})

    def __init__(self, inner: Model, path: Path) -> None:
        self.name = inner.name
        self._inner = inner
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._replies = {record["key"]: record for record in map(json.loads, lines)}

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the stored reply, or that of the model."""
        if options.top_logprobs is None:
            yield Reply(assistant_message("(an answer)"))
            return
        asked = [[message.role, message.content] for message in messages]
        sampling = [options.temperature, options.seed]
        terms = json.dumps([asked, list(options.stop), options.max_tokens, dict(options.extra_body), sampling])
        key = hashlib.sha256(terms.encode()).hexdigest()[:24]
        if key not in self._replies:
            self._record(key, await self._ask(messages, tools, options))
        record = self._replies[key]
        tokens = tuple(Token(text, tuple(map(tuple, choices))) for text, choices in record["tokens"])
        yield Reply(assistant_message(record["content"]), record["finish"], tokens=tokens)

    async def aclose(self) -> None:
        """Close the model."""
        await self._inner.aclose()

    async def _ask(self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions) -> Reply:
        async with aclosing(self._inner.stream(messages, tools, options)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    return part
        raise ModelError("The stream ended without a reply.")

    def _record(self, key: str, reply: Reply) -> None:
        tokens = [[token.text, token.alternatives] for token in reply.tokens]
        record = {"key": key, "content": reply.message.content, "finish": reply.finish, "tokens": tokens}
        self._replies[key] = json.loads(json.dumps(record))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


async def ablate(options: argparse.Namespace) -> dict[str, Results]:
    """Return the results with all steps, and without each."""
    folder = await fetch_wheel()
    is_right = load_checker(folder)
    stop = options.skip + options.number
    questions = [
        question
        for category in options.categories
        for question in read_questions(folder, category, options.part, stop, options.seed)[options.skip :]
    ]
    inner = RecordedModel(create_unwrapped_model("local"), folder.parent / "berkeley_replies.jsonl")
    models = {"all steps": PythonProtocolModel(inner)} | {
        f"without {name}": PythonProtocolModel(inner, without=(name,)) for name in OPTIONAL_STEPS
    }
    try:
        return {name: await _measure(model, questions, is_right, options.max_tokens) for name, model in models.items()}
    finally:
        await inner.aclose()


def format_table(results: dict[str, Results]) -> str:
    """Return the share of right answers in percent, by category."""
    categories = list(next(iter(results.values())))
    lines = [f"{'':28}" + "".join(f"{name:>18}" for name in (*categories, "all"))]
    for name, by_category in results.items():
        groups = [*by_category.values(), [right for group in by_category.values() for right in group]]
        lines.append(f"{name:28}" + "".join(f"{sum(group) / len(group):>18.1%}" for group in groups))
    return "\n".join([*lines, "questions: " + ", ".join(f"{name} {len(by)}" for name, by in by_category.items())])


async def _measure(
    model: Model,
    questions: Sequence[BerkeleyQuestion],
    is_right: Callable[[BerkeleyQuestion, Sequence[ToolCallPair]], bool],
    max_tokens: int,
) -> Results:
    results: Results = {}
    for question in questions:
        calls = await _ask_question(model, question, max_tokens)
        results.setdefault(question.category, []).append(is_right(question, calls))
    return results


async def _ask_question(model: Model, question: BerkeleyQuestion, max_tokens: int) -> list[ToolCallPair]:
    """Return the calls of the answer, as the gateway would send them."""
    body = {"model": "local", "messages": question.messages, "tools": question.tools, "max_tokens": max_tokens}
    request = parse_body({**body, "temperature": 0})
    asked = replace(request.options, stream=False)
    async with aclosing(model.stream(request.messages, request.tools, asked)) as parts:
        async for part in parts:
            if type(part) is Reply:
                return [(call.name, dict(call.arguments)) for call in triage_calls(part, request).valid_calls]
    return []
