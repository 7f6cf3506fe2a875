"""Tools of a library for agents of openai-agents."""

from typing import Any

from agents import FunctionTool, Tool, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from opposable.agent.tool_execution import resolve_calls
from opposable.domain.call_context import CallContext
from opposable.domain.content import FilePart, ImagePart, to_data_url
from opposable.domain.events import Reply
from opposable.domain.messages import assistant_message
from opposable.domain.tools import ToolCall
from opposable.tools.library import ToolLibrary


def create_tools(library: ToolLibrary) -> list[Tool]:
    """Return the enabled tools of a library, for the `tools` of an `agents.Agent`.

    Calls have the policies of the library: validation, approval, rate limits, retries and circuit breaker. A failure
    is reported to the model as the result. Images and files follow the text of a result.
    """
    return [
        FunctionTool(
            definition.name,
            definition.description,
            definition.parameters,
            _create_function(library, definition.name),
            strict_json_schema=False,
        )
        for definition in library.definitions
    ]


def _create_function(library: ToolLibrary, name: str) -> Any:
    async def call(context: ToolContext[Any], arguments: str) -> Any:
        written = ToolCall.from_json(context.tool_call_id, name, arguments)
        [resolved] = resolve_calls(Reply(assistant_message("", (written,))), library, "en")
        if resolved.failure is not None:
            return resolved.failure.content
        call_context = CallContext(call_id=context.tool_call_id)
        result = await library.call(name, resolved.arguments, call_context, resolved.checked)
        if not result.media:
            return result.content
        return [ToolOutputText(text=result.content), *map(_to_output, result.media)]

    return call


def _to_output(part: ImagePart | FilePart) -> ToolOutputImage | ToolOutputFileContent:
    if isinstance(part, ImagePart):
        return ToolOutputImage(image_url=to_data_url(part))
    if part.url:
        return ToolOutputFileContent(file_url=part.url)
    return ToolOutputFileContent(file_data=to_data_url(part), filename=part.name or "file")
