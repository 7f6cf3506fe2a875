"""A loop without anything: it parses the calls, makes them, and tells what they brought or raised."""

import asyncio
import re

import orjson

from opposable.agent.history import trim_messages
from opposable.agent.limits import Limits
from opposable.domain.events import Reply
from opposable.domain.messages import Message, tool_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import NO_USAGE, Usage
from opposable.evals.agent_runs.environment import Environment
from opposable.models.base import Model, ModelOptions

_CALL_PATTERN = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_OPTIONS = ModelOptions(stream=False)


async def run_baseline_loop(
    model: Model, environment: Environment, task: str, limits: Limits
) -> tuple[str, int, int, Usage]:
    """Do a task as the plainest loop does: the answer ("" at a limit), the turns, the calls wanted, what was used.

    Arguments are taken as they are parsed, calls in the text are taken where they stand, an error is told in its own
    words, and a name that is no tool's ends nothing but says so.
    """
    definitions = tuple(one.definition for one in environment.build_library().tools)
    history: list[Message] = [user_message(task)]
    usage, wanted = NO_USAGE, 0
    for turn in range(1, (limits.turns or 20) + 1):
        sent = history if limits.context is None else trim_messages(history, limits.context)
        reply = await _request_reply(model, sent, definitions)
        usage += reply.usage
        said = reply.message
        calls = said.tool_calls or _parse_calls_in_text(said.content)
        if not calls:
            return said.content, turn, wanted, usage
        history.append(Message("assistant", said.content if said.tool_calls else "", calls))
        wanted += len(calls)
        results = await asyncio.gather(*(_execute_call(environment, call) for call in calls))
        history += [tool_message(call.id, call.name, result) for call, result in zip(calls, results, strict=True)]
    return "", limits.turns or 20, wanted, usage


async def _request_reply(model: Model, history: list[Message], definitions: tuple[ToolDefinition, ...]) -> Reply:
    reply: Reply | None = None
    async for part in model.stream(history, definitions, _OPTIONS):
        if isinstance(part, Reply):
            reply = part
    assert reply is not None
    return reply


def _parse_calls_in_text(text: str) -> tuple[ToolCall, ...]:
    calls = []
    for n, found in enumerate(_CALL_PATTERN.findall(text)):
        try:
            said = orjson.loads(found)
            calls.append(ToolCall(f"text_{n}", said["name"], orjson.dumps(said["arguments"]).decode()))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            continue
    return tuple(calls)


async def _execute_call(environment: Environment, call: ToolCall) -> str:
    try:
        value = await environment.tools[call.name](**orjson.loads(call.arguments))
    except KeyError:
        return f"Error: unknown tool {call.name}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the model is told
        return f"Error: {error}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
