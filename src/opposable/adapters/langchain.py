"""Tools of a library for agents of LangChain and LangGraph."""

import base64
from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException

from opposable.domain.content import FilePart, ImagePart
from opposable.tools.library import ToolLibrary


def create_tools(library: ToolLibrary, *, media_in_content: bool = False) -> list[BaseTool]:
    """Return the enabled tools of a library, for `langchain.agents.create_agent`.

    Calls have the policies of the library: validation, approval, rate limits, retries and circuit breaker. A failure
    is a tool message with the status "error". The tools are asynchronous.

    Images and files of a result are content blocks in the artifact of its message; with `media_in_content`, they also
    follow the text, for a model whose API takes them in tool messages. The chat-completions API rejects them there.
    """
    return [
        _LibraryTool(
            library=library,
            name=definition.name,
            description=definition.description or definition.name,
            args_schema=definition.parameters,
            handle_tool_error=True,
            media_in_content=media_in_content,
        )
        for definition in library.definitions
    ]


class _LibraryTool(BaseTool):
    """A tool of a library. Its arguments are one dict, so that they may be named `config`, `run_manager` or `self`."""

    library: ToolLibrary
    media_in_content: bool
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _parse_input(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> dict[str, Any]:
        arguments = super()._parse_input(tool_input, tool_call_id)
        return {"arguments": arguments}

    def _run(self, arguments: dict[str, Any]) -> str:
        raise NotImplementedError(f"{self.name} is asynchronous. Call it with `ainvoke`.")

    async def _arun(self, arguments: dict[str, Any]) -> tuple[str | list[dict[str, Any]], list[dict[str, Any]]]:
        result = await self.library.call(self.name, arguments)
        if result.failure is not None:
            raise ToolException(result.content)
        blocks = [*map(_to_block, result.media)]
        if blocks and self.media_in_content:
            return [{"type": "text", "text": result.content}, *blocks], blocks
        return result.content, blocks


def _to_block(part: ImagePart | FilePart) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "image" if isinstance(part, ImagePart) else "file"}
    if part.url:
        return block | {"url": part.url}
    if isinstance(part, FilePart) and part.name:
        block["filename"] = part.name
    return block | {"base64": base64.b64encode(part.data).decode(), "mime_type": part.media_type}
