"""A short test of tool calling, to find the best calling mode of a model."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.domain.errors import ModelError
from opposable.domain.events import Reply
from opposable.domain.messages import user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import Model, ModelOptions

ExpectedCall = tuple[str, dict[str, Any]]
"""The name of a tool, and the arguments the call must have."""


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """A question, the capability it tests, and the expected calls.

    None if a text answer is expected.
    """

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


def _define_tool(name: str, description: str, required: Sequence[str], **properties: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(name, description, {"type": "object", "properties": properties, "required": list(required)})


_TEXT_SCHEMA = {"type": "string"}
_NUMBER_SCHEMA = {"type": "number"}

PROBE_TOOLS = (
    _define_tool("get_weather", "The current weather in a city.", ["city"], city=_TEXT_SCHEMA),
    _define_tool("set_timer", "Start a timer that rings after some minutes.", ["minutes"], minutes={"type": "integer"}),
    _define_tool(
        "convert_currency",
        "Convert an amount of money from one currency to another.",
        ["amount", "source", "target"],
        amount=_NUMBER_SCHEMA,
        source={"type": "string", "enum": ["USD", "EUR", "CNY"]},
        target={"type": "string", "enum": ["USD", "EUR", "CNY"]},
    ),
    _define_tool(
        "ship_parcel",
        "Send a parcel to an address.",
        ["weight_kg", "address"],
        weight_kg=_NUMBER_SCHEMA,
        address={
            "type": "object",
            "properties": {"name": _TEXT_SCHEMA, "street": _TEXT_SCHEMA, "city": _TEXT_SCHEMA},
            "required": ["name", "city"],
        },
    ),
)

PROBE_QUESTIONS = (
    ProbeQuestion("a call", "What is the weather like in Oslo right now?", (("get_weather", {"city": "Oslo"}),)),
    ProbeQuestion("a choice", "Ring me in 25 minutes.", (("set_timer", {"minutes": 25}),)),
    ProbeQuestion(
        "two calls",
        "What's the weather in Oslo, and what's the weather in Lima?",
        (("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Lima"})),
    ),
    ProbeQuestion("no tool fits", "Who wrote the play Hamlet?"),
    ProbeQuestion(
        "a nested argument",
        "Send a parcel of 2.5 kg to Ana Silva, Rua Nova 5, Lisbon.",
        (("ship_parcel", {"weight_kg": 2.5, "address": {"name": "Ana Silva", "city": "Lisbon"}}),),
    ),
    ProbeQuestion(
        "Chinese", "请把100美元换成人民币。", (("convert_currency", {"amount": 100, "source": "USD", "target": "CNY"}),)
    ),
)


async def probe_model(model: Model, questions: Sequence[ProbeQuestion] = PROBE_QUESTIONS) -> AsyncIterator[ProbeResult]:
    """Ask each question once and yield its result. A model error fails the question."""
    for question in questions:
        started = time.perf_counter()
        try:
            reply = await _request_reply(model, question.prompt)
        except ModelError as error:
            yield ProbeResult(question, False, str(error), time.perf_counter() - started, 0)
            continue
        calls = [(call.name, call.arguments) for call in reply.message.tool_calls]
        passed = calls_match(question.expected_calls, calls) and bool(calls or reply.message.content.strip())
        actual = (
            ", ".join(f"{name}({orjson.dumps(arguments).decode()})" for name, arguments in calls)
            or reply.message.content
        )
        yield ProbeResult(question, passed, actual, time.perf_counter() - started, reply.usage.total_tokens)


def calls_match(expected_calls: Sequence[ExpectedCall], calls: Sequence[tuple[str, Any]]) -> bool:
    """Return whether the calls are the expected ones, in any order.

    Text is compared without case.
    """
    unmatched = list(calls)
    for name, arguments in expected_calls:
        match = next((call for call in unmatched if call[0] == name and _value_matches(call[1], arguments)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return not unmatched


async def _request_reply(model: Model, prompt: str) -> Reply:
    async for part in model.stream((user_message(prompt),), PROBE_TOOLS, ModelOptions(stream=False, max_tokens=300)):
        if type(part) is Reply:
            return part
    raise ModelError("The stream ended without a reply.")


def _value_matches(actual: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and _value_matches(actual[name], value) for name, value in expected.items()
        )
    if isinstance(expected, str):
        return isinstance(actual, str) and expected.casefold() in actual.casefold()
    return bool(actual == expected)
