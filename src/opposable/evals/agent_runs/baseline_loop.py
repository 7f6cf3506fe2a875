"""A baseline agent loop without guards: it parses calls, executes them, and returns results or error messages."""

import asyncio
import re

import orjson

from opposable.agent.history import trim_messages
from opposable.agent.limits import Limits
from opposable.domain.messages import Message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.domain.usage import NO_USAGE, Usage
from opposable.evals.agent_runs.environment import Environment
from opposable.models.base import Model, ModelOptions, request_reply

_CALL_PATTERN = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_OPTIONS = ModelOptions(stream=False)
_DEFAULT_MAX_TURNS = 20


async def run_baseline_loop(
    model: Model, environment: Environment, task: str, limits: Limits
) -> tuple[str, int, Usage]:
    """Run a task with the simplest loop.

    The loop does not validate arguments. It reports the text of an exception, and an unknown tool name as an error.

    Returns:
        The answer ("" at the turn limit), the number of requested calls, and the usage.
    """
    definitions = tuple(tool.definition for tool in environment.build_library().tools)
    history: list[Message] = [user_message(task)]
    usage, call_count = NO_USAGE, 0
    for _ in range(limits.turns or _DEFAULT_MAX_TURNS):
        reply = await request_reply(model, trim_messages(history, limits.context), definitions, _OPTIONS)
        usage += reply.usage
        message = reply.message
        calls = message.tool_calls or _parse_calls_in_text(message.content)
        if not calls:
            return message.content, call_count, usage
        history.append(Message("assistant", message.content if message.tool_calls else "", calls))
        call_count += len(calls)
        results = await asyncio.gather(*(_execute_call(environment, call) for call in calls))
        history += [tool_message(call.id, call.name, result) for call, result in zip(calls, results, strict=True)]
    return "", call_count, usage


def _parse_calls_in_text(text: str) -> tuple[ToolCall, ...]:
    calls = []
    for number, call_text in enumerate(_CALL_PATTERN.findall(text)):
        try:
            call = orjson.loads(call_text)
            calls.append(ToolCall(f"text_{number}", call["name"], call["arguments"]))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            continue
    return tuple(calls)


async def _execute_call(environment: Environment, call: ToolCall) -> str:
    try:
        value = await environment.tools[call.name](**call.arguments)
    except KeyError:
        return f"Error: unknown tool {call.name}"
    except Exception as error:  # noqa: BLE001 - the model receives the text of any exception
        return f"Error: {error}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
