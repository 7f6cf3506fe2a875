"""The library's own tools: to find others, and to read on in a result that was too long."""

from collections.abc import Callable
from typing import Any

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolRefused
from opposable.tools import failure_messages as sentences
from opposable.tools.descriptions import describe_in_one_line
from opposable.tools.function import FunctionTool
from opposable.tools.registry import RegisteredTool, RegistryEntry, ToolState
from opposable.tools.result_store import ResultStore

SEARCH_TOOLS = "search_tools"
READ_RESULT = "read_result"

_MAX_MATCHES = 10
"""The most places of a text that are told at once."""
_CONTEXT_CHARACTERS = 150
"""Characters told on each side of such a place."""


class MetaTools:
    """What a library offers of its own accord. `search` finds tools by a need; `cap` bounds what is told at once."""

    def __init__(
        self, search: Callable[[str], list[RegisteredTool]], result_store: ResultStore, max_characters: int
    ) -> None:
        self._search = search
        self._result_store = result_store
        self._page_characters = max(1, max_characters - 200)

    async def search_tools(self, need: str, context: CallContext) -> dict[str, Any]:
        """Find tools that are not listed here. Say in a few words what you need to do; what is found can be called.

        Args:
            need: what the tool should do, in a few words.
            context: the call's.
        """
        found = self._search(need)
        return {
            "note": sentences.found_tools_note(len(found), context.language),
            "tools": [{"name": slot.definition.name, "about": describe_in_one_line(slot)[2:]} for slot in found],
        }

    async def read_result(self, handle: str, context: CallContext, offset: int = 0, find: str = "") -> str:
        """Read on in a result that was too long to show at once, or find a text in it.

        Args:
            handle: the handle given where the result was cut.
            context: the call's.
            offset: the character to read from, counted from 0.
            find: a text to look for from the offset on; its places are shown instead.
        """
        whole = self._result_store.get(context.run_id, handle)
        if whole is None:
            raise ToolRefused(sentences.unknown_result_message(handle, context.language))
        start = min(max(offset, 0), len(whole))
        if find:
            return self._show_matches(whole, start, find, context.language)
        end = min(start + self._page_characters, len(whole))
        return f"{sentences.result_page_header(start, end, len(whole), context.language)}\n{whole[start:end]}"

    def to_registered_tools(self) -> dict[str, RegisteredTool]:
        """Both tools by name."""
        made = [FunctionTool(self.search_tools), FunctionTool(self.read_result)]
        return {
            tool.tool_id: RegisteredTool(
                tool, tool.definition, RegistryEntry(tool.tool_id, ToolState(), None), None, None
            )
            for tool in made
        }

    def _show_matches(self, text: str, start: int, find: str, language: str) -> str:
        places: list[int] = []
        at = text.find(find, start)
        while at >= 0 and len(places) < _MAX_MATCHES:
            places.append(at)
            at = text.find(find, at + len(find))
        count = text.count(find, start)
        lines = [sentences.result_matches_header(find[:100], count, len(places), language)]
        lines += [
            f"{at}: …{text[max(0, at - _CONTEXT_CHARACTERS) : at + len(find[:_CONTEXT_CHARACTERS]) + _CONTEXT_CHARACTERS]}…"
            for at in places
        ]
        return "\n".join(lines)[: self._page_characters]
