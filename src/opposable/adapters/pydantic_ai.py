"""Tools of a library for agents of pydantic-ai."""

from typing import Any

from pydantic_ai import ModelRetry, RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from opposable.domain.call_context import CallContext
from opposable.tools.library import ToolLibrary


def create_toolset(library: ToolLibrary) -> FunctionToolset[Any]:
    """Return the enabled tools of a library, for the `toolsets` of a `pydantic_ai.Agent`.

    Calls have the policies of the library: validation, approval, rate limits, retries and circuit breaker. A call with
    invalid arguments is retried as pydantic-ai allows. Other failures are results.
    """
    return FunctionToolset(
        [
            Tool.from_schema(
                _create_function(library, definition.name),
                definition.name,
                definition.description,
                definition.parameters,
                takes_ctx=True,
            )
            for definition in library.definitions
        ]
    )


def _create_function(library: ToolLibrary, name: str) -> Any:
    async def call(context: RunContext[Any], /, **arguments: Any) -> str:  # arguments may be named `context`
        call_context = CallContext(run_id=context.run_id or "", call_id=context.tool_call_id or "")
        result = await library.call(name, arguments, call_context)
        if result.failure == "invalid_arguments":
            raise ModelRetry(result.content)
        return result.content

    return call
