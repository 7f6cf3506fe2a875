"""Requests in which parameters have names that the provider accepts, and replies with their own names again."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable.domain.events import CallDelta, ModelEvent, Reply
from opposable.domain.messages import Message
from opposable.domain.parameter_names import rename_properties, replace_names
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ModelOptions


async def stream_with_names(
    stream: Callable[..., AsyncGenerator[ModelEvent, None]],
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: ModelOptions,
    names: Mapping[str, Mapping[str, str]],
) -> AsyncGenerator[ModelEvent, None]:
    """Stream a reply to a request with the `names` of parameters by tool and own name. Calls come at once, at its end."""
    own_names = {tool: {new: own for own, new in renamed.items()} for tool, renamed in names.items()}
    tools = [replace(tool, parameters=rename_properties(tool.flat_parameters, names[tool.name])) for tool in tools]
    async with aclosing(stream([_rename_calls(message, names) for message in messages], tools, options)) as parts:
        async for part in parts:
            if not isinstance(part, CallDelta):  # its arguments have the other names
                yield replace(part, message=_rename_calls(part.message, own_names)) if isinstance(part, Reply) else part


def _rename_calls(message: Message, names: Mapping[str, Mapping[str, str]]) -> Message:
    calls = [
        replace(call, arguments=replace_names(call.arguments, names.get(call.name, {})), raw=None)
        if call.arguments
        else call
        for call in message.tool_calls
    ]
    return replace(message, tool_calls=tuple(calls)) if calls else message
