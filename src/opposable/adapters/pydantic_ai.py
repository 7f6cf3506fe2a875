"""Tools of a library for agents of pydantic-ai."""

from typing import Any

from pydantic_ai import BinaryContent, DocumentUrl, ImageUrl, ModelRetry, RunContext, Tool, ToolFailed
from pydantic_ai.toolsets import FunctionToolset

from opposable.domain.call_context import CallContext
from opposable.domain.content import FilePart, ImagePart
from opposable.domain.tools import ToolDefinition
from opposable.tools.library import ToolLibrary
from opposable.tools.meta_tools import READ_RESULT


def create_toolset(library: ToolLibrary) -> FunctionToolset[Any]:
    """Return the enabled tools of a library, for the `toolsets` of a `pydantic_ai.Agent`.

    Calls have the policies of the library: validation, approval, rate limits, retries and circuit breaker. A call with
    invalid arguments is retried as pydantic-ai allows. Other failures have the outcome "failed". Images and files
    follow the text of a result. A run with a result that was cut also gets the tool `read_result`.
    """
    cut_runs: set[str] = set()
    tools = [_create_tool(library, definition, cut_runs) for definition in library.definitions]

    async def prepare(context: RunContext[Any], definition: Any) -> Any:
        return definition if context.run_id in cut_runs else None

    if (result_reader := library.find_tool(READ_RESULT)) is not None:
        tools.append(_create_tool(library, result_reader.definition, cut_runs))
        tools[-1].prepare = prepare
    return FunctionToolset(tools)


def _create_tool(library: ToolLibrary, definition: ToolDefinition, cut_runs: set[str]) -> Tool[Any]:
    name = definition.name

    async def call(context: RunContext[Any], /, **arguments: Any) -> Any:  # arguments may be named `context`
        call_context = CallContext(run_id=context.run_id or "", call_id=context.tool_call_id or "")
        result = await library.call(name, arguments, call_context)
        if result.failure == "invalid_arguments":
            raise ModelRetry(result.content)
        if result.failure is not None:
            raise ToolFailed(result.content)
        if result.handle:
            cut_runs.add(call_context.run_id)
        return [result.content, *map(_to_content, result.media)] if result.media else result.content

    return Tool.from_schema(call, name, definition.description, definition.parameters, takes_ctx=True)


def _to_content(part: ImagePart | FilePart) -> BinaryContent | ImageUrl | DocumentUrl:
    if part.data:
        return BinaryContent(part.data, media_type=part.media_type)
    return ImageUrl(part.url) if isinstance(part, ImagePart) else DocumentUrl(part.url)
