"""Tools of a library for agents of openai-agents."""

from typing import Any

from agents import FunctionTool, Tool
from agents.tool_context import ToolContext

from opposable.domain.call_context import CallContext
from opposable.parsers import parse_arguments
from opposable.tools.library import ToolLibrary


def create_tools(library: ToolLibrary) -> list[Tool]:
    """Return the enabled tools of a library, for the `tools` of an `agents.Agent`.

    Calls have the policies of the library: validation, approval, rate limits, retries and circuit breaker. A failure
    is reported to the model as the result.
    """
    return [
        FunctionTool(
            definition.name,
            definition.description,
            definition.parameters,
            _create_function(library, definition.name, definition.parameters),
            strict_json_schema=False,
        )
        for definition in library.definitions
    ]


def _create_function(library: ToolLibrary, name: str, parameters: dict[str, Any]) -> Any:
    async def call(context: ToolContext[Any], arguments: str) -> str:
        parsed = parse_arguments(arguments, parameters)
        if parsed.value is None:
            return parsed.problem or "The arguments cannot be read."
        result = await library.call(name, parsed.value, CallContext(call_id=context.tool_call_id))
        return result.content

    return call
