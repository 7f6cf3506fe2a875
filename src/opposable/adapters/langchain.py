"""Tools of a library for agents of LangChain and LangGraph."""

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from opposable.tools.library import ToolLibrary


def create_tools(library: ToolLibrary) -> list[BaseTool]:
    """Return the enabled tools of a library, for `langchain.agents.create_agent`.

    Calls have the policies of the library: validation, approval, rate limits, retries and circuit breaker. A failure
    is a tool message with the status "error". The tools are asynchronous.
    """
    return [
        StructuredTool(
            name=definition.name,
            description=definition.description or definition.name,
            args_schema=definition.parameters,
            coroutine=_create_function(library, definition.name),
            handle_tool_error=True,
        )
        for definition in library.definitions
    ]


def _create_function(library: ToolLibrary, name: str) -> Any:
    async def call(**arguments: Any) -> str:
        result = await library.call(name, arguments)
        if result.failure is not None:
            raise ToolException(result.content)
        return result.content

    return call
