"""The meta tools of a library: search for tools, and read the rest of a long result."""

from collections.abc import Awaitable, Callable
from typing import Any

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolRefused
from opposable.domain.language import Language
from opposable.tools import failure_messages
from opposable.tools.descriptions import describe_in_one_line
from opposable.tools.function import FunctionTool
from opposable.tools.registry import RegisteredTool, RegistryEntry, ToolState
from opposable.tools.result_store import ResultStore
from opposable.tools.traits import ToolTraits

SEARCH_TOOLS = "search_tools"
READ_RESULT = "read_result"

_READ_ONLY = ToolTraits(read_only=True, idempotent=True)
_MAX_MATCHES = 10
_CONTEXT_CHARACTERS = 150
"""Characters shown on each side of a match."""


class MetaTools:
    """The library's own tools. The docstrings and parameters of the two tools are sent to the model.

    `search` finds tools by a description of what they should do. `get_max_characters` limits the shown part of a result.
    """

    def __init__(
        self,
        search: Callable[[str], Awaitable[list[RegisteredTool]]],
        result_store: ResultStore,
        get_max_characters: Callable[[str], int],
    ) -> None:
        self._search = search
        self._result_store = result_store
        self._get_max_characters = get_max_characters

    async def search_tools(self, need: str, context: CallContext) -> dict[str, Any]:
        """Find tools that are not listed here. Say in a few words what you need to do; what is found can be called.

        Args:
            need: what the tool should do, in a few words.
            context: the call's.
        """
        tools = await self._search(need)
        return {
            "note": failure_messages.found_tools_note(len(tools), context.language),
            "tools": [{"name": tool.name, "about": describe_in_one_line(tool)[2:]} for tool in tools],
        }

    async def read_result(self, handle: str, context: CallContext, offset: int = 0, find: str = "") -> str:
        """Read on in a result that was too long to show at once, or find a text in it.

        Args:
            handle: the handle given where the result was cut.
            context: the call's.
            offset: the character to read from, counted from 0.
            find: a text to look for from the offset on; its places are shown instead.
        """
        text = self._result_store.get(context.result_scope, handle)
        if text is None:
            raise ToolRefused(failure_messages.unknown_result_message(handle, context.language))
        start = min(max(offset, 0), len(text))
        if find:
            return self._show_matches(text, start, find, context.language)
        end = min(start + self._get_page_characters(text), len(text))
        header = failure_messages.result_page_header(start, end, len(text), context.language)
        return f"{header}\n{text[start:end]}"

    def to_registered_tools(self) -> dict[str, RegisteredTool]:
        """Return both tools by name."""
        tools = [FunctionTool(self.search_tools), FunctionTool(self.read_result)]
        return {
            tool.tool_id: RegisteredTool(
                tool, tool.outline, RegistryEntry(tool.tool_id, ToolState(), None), None, None, _READ_ONLY
            )
            for tool in tools
        }

    def _get_page_characters(self, text: str) -> int:
        return max(1, self._get_max_characters(text) - 200)

    def _show_matches(self, text: str, start: int, find: str, language: Language) -> str:
        positions: list[int] = []
        position = text.find(find, start)
        while position >= 0 and len(positions) < _MAX_MATCHES:
            positions.append(position)
            position = text.find(find, position + len(find))
        count = text.count(find, start)
        lines = [failure_messages.result_matches_header(find[:100], count, len(positions), language)]
        for position in positions:
            first = max(0, position - _CONTEXT_CHARACTERS)
            last = position + len(find[:_CONTEXT_CHARACTERS]) + _CONTEXT_CHARACTERS
            lines.append(f"{position}: …{text[first:last]}…")
        return "\n".join(lines)[: self._get_page_characters(text)]
