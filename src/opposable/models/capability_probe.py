"""A short exam in calling tools: tells which way of asking suits a model."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.domain.errors import ModelError
from opposable.domain.events import Reply
from opposable.domain.messages import user
from opposable.domain.tools import ToolDefinition
from opposable.models.base import Model, ModelOptions

Wanted = tuple[str, dict[str, Any]]
"""A call: the tool's name, and the arguments that must be there with these values."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what it tries, what is said, and the calls that are right (none: an answer in words is)."""

    tries: str
    said: str
    wanted: tuple[Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """How a question went: whether the calls were right, what came instead, seconds and tokens."""

    question: Question
    right: bool
    came: str
    seconds: float
    tokens: int


def _tool(name: str, description: str, required: Sequence[str], **properties: dict[str, Any]) -> ToolDefinition:
    return ToolDefinition(name, description, {"type": "object", "properties": properties, "required": list(required)})


_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}

TOOLS = (
    _tool("get_weather", "The current weather in a city.", ["city"], city=_TEXT),
    _tool("set_timer", "Start a timer that rings after some minutes.", ["minutes"], minutes={"type": "integer"}),
    _tool(
        "convert_currency",
        "Convert an amount of money from one currency to another.",
        ["amount", "source", "target"],
        amount=_NUMBER,
        source={"type": "string", "enum": ["USD", "EUR", "CNY"]},
        target={"type": "string", "enum": ["USD", "EUR", "CNY"]},
    ),
    _tool(
        "ship_parcel",
        "Send a parcel to an address.",
        ["weight_kg", "address"],
        weight_kg=_NUMBER,
        address={
            "type": "object",
            "properties": {"name": _TEXT, "street": _TEXT, "city": _TEXT},
            "required": ["name", "city"],
        },
    ),
)

QUESTIONS = (
    Question("a call", "What is the weather like in Oslo right now?", (("get_weather", {"city": "Oslo"}),)),
    Question("a choice", "Ring me in 25 minutes.", (("set_timer", {"minutes": 25}),)),
    Question(
        "two calls",
        "What's the weather in Oslo, and what's the weather in Lima?",
        (("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Lima"})),
    ),
    Question("no tool fits", "Who wrote the play Hamlet?"),
    Question(
        "a nested argument",
        "Send a parcel of 2.5 kg to Ana Silva, Rua Nova 5, Lisbon.",
        (("ship_parcel", {"weight_kg": 2.5, "address": {"name": "Ana Silva", "city": "Lisbon"}}),),
    ),
    Question(
        "Chinese", "请把100美元换成人民币。", (("convert_currency", {"amount": 100, "source": "USD", "target": "CNY"}),)
    ),
)


async def examine(model: Model, questions: Sequence[Question] = QUESTIONS) -> AsyncIterator[Mark]:
    """Ask each question once, and mark it. A model that cannot be asked in this way fails the question."""
    for question in questions:
        started = time.perf_counter()
        try:
            reply = await _reply(model, question.said)
        except ModelError as error:
            yield Mark(question, False, str(error), time.perf_counter() - started, 0)
            continue
        calls = [(call.name, _arguments(call.arguments)) for call in reply.message.tool_calls]
        right = matches(question.wanted, calls) and bool(calls or reply.message.content.strip())
        came = ", ".join(f"{name}({orjson.dumps(given).decode()})" for name, given in calls) or reply.message.content
        yield Mark(question, right, came, time.perf_counter() - started, reply.usage.total_tokens)


def matches(wanted: Sequence[Wanted], calls: Sequence[tuple[str, Any]]) -> bool:
    """Whether the calls are those wanted, in any order; text is compared without regard to case."""
    left = list(calls)
    for name, arguments in wanted:
        found = next((call for call in left if call[0] == name and _holds(call[1], arguments)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


async def _reply(model: Model, said: str) -> Reply:
    async for part in model.stream((user(said),), TOOLS, ModelOptions(stream=False, max_tokens=300)):
        if type(part) is Reply:
            return part
    raise ModelError("The stream ended without a reply.")


def _holds(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(
            name in given and _holds(given[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, str):
        return isinstance(given, str) and wanted.casefold() in given.casefold()
    return bool(given == wanted)


def _arguments(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
