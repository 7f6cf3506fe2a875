"""A test of tool calling, to find the best calling mode of a model."""

import functools
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from opposable.domain.errors import ModelError
from opposable.domain.messages import user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import Model, ModelOptions, request_reply

_OPTIONS = ModelOptions(stream=False, max_tokens=300)

ExpectedCall = tuple[str, dict[str, Any]]
"""The name of a tool, and the arguments the call must have; a list is any one of its values."""


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """A question, the capability it tests, and the expected calls. None if a text answer is expected."""

    capability: str
    prompt: str
    expected_calls: tuple[ExpectedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a question, with the actual calls or text."""

    question: ProbeQuestion
    passed: bool
    actual: str
    seconds: float
    tokens: int


@functools.cache
def load_probe_tools() -> tuple[ToolDefinition, ...]:
    """Return the tools that every question is asked with."""
    return tuple(ToolDefinition(**tool) for tool in _read_data()["tools"])


@functools.cache
def load_probe_questions() -> tuple[ProbeQuestion, ...]:
    """Return all questions. Any six in a row, from the first on, test six capabilities."""
    return tuple(
        ProbeQuestion(one["capability"], one["prompt"], tuple((c["name"], c["arguments"]) for c in one["calls"]))
        for one in _read_data()["questions"]
    )


def _read_data() -> Any:
    return orjson.loads((Path(__file__).parent / "probe_questions.json").read_bytes())


async def probe_model(model: Model, questions: Sequence[ProbeQuestion]) -> AsyncIterator[ProbeResult]:
    """Ask each question once, and yield its result. A model error fails the question."""
    for question in questions:
        started = time.perf_counter()
        try:
            reply = await request_reply(model, (user_message(question.prompt),), load_probe_tools(), _OPTIONS)
        except ModelError as error:
            yield ProbeResult(question, False, str(error), time.perf_counter() - started, 0)
            continue
        calls = [(call.name, call.arguments) for call in reply.message.tool_calls]
        passed = calls_match(question.expected_calls, calls) and bool(calls or reply.message.content.strip())
        actual = ", ".join(f"{name}({orjson.dumps(arguments).decode()})" for name, arguments in calls)
        seconds, actual = time.perf_counter() - started, actual or reply.message.content
        yield ProbeResult(question, passed, actual, seconds, reply.usage.total_tokens)


def calls_match(expected_calls: Sequence[ExpectedCall], calls: Sequence[tuple[str, Any]]) -> bool:
    """Return whether the calls are the expected ones, in any order. Text is compared without case."""
    unmatched = list(calls)
    for name, arguments in expected_calls:
        match = next((call for call in unmatched if call[0] == name and _value_matches(call[1], arguments)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return not unmatched


def _value_matches(actual: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return any(_value_matches(actual, one) for one in expected)
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and _value_matches(actual[name], value) for name, value in expected.items()
        )
    if isinstance(expected, str):
        return isinstance(actual, str) and expected.casefold() in actual.casefold()
    return bool(actual == expected)
