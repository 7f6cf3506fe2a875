"""The library's own tools: to find others, and to read on in a result that was too long."""

from collections.abc import Callable
from typing import Any

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolRefused
from opposable.tools import failure_messages as sentences
from opposable.tools.descriptions import line_of
from opposable.tools.function import FunctionTool
from opposable.tools.registry import Entry, Service, Slot
from opposable.tools.result_store import Shelf

SEARCH_TOOLS = "search_tools"
READ_RESULT = "read_result"

_PLACES = 10
"""The most places of a text that are told at once."""
_AROUND = 150
"""Characters told on each side of such a place."""


class OwnTools:
    """What a library offers of its own accord. `search` finds tools by a need; `cap` bounds what is told at once."""

    def __init__(self, search: Callable[[str], list[Slot]], shelf: Shelf, cap: int) -> None:
        self._search = search
        self._shelf = shelf
        self._part = max(1, cap - 200)

    async def search_tools(self, need: str, context: CallContext) -> dict[str, Any]:
        """Find tools that are not listed here. Say in a few words what you need to do; what is found can be called.

        Args:
            need: what the tool should do, in a few words.
            context: the call's.
        """
        found = self._search(need)
        return {
            "note": sentences.found_tools(len(found), context.language),
            "tools": [{"name": slot.definition.name, "about": line_of(slot)[2:]} for slot in found],
        }

    async def read_result(self, handle: str, context: CallContext, offset: int = 0, find: str = "") -> str:
        """Read on in a result that was too long to show at once, or find a text in it.

        Args:
            handle: the handle given where the result was cut.
            context: the call's.
            offset: the character to read from, counted from 0.
            find: a text to look for from the offset on; its places are shown instead.
        """
        whole = self._shelf.get(context.run_id, handle)
        if whole is None:
            raise ToolRefused(sentences.no_such_result(handle, context.language))
        start = min(max(offset, 0), len(whole))
        if find:
            return self._places(whole, start, find, context.language)
        end = min(start + self._part, len(whole))
        return f"{sentences.part_of_result(start, end, len(whole), context.language)}\n{whole[start:end]}"

    def slots(self) -> dict[str, Slot]:
        """Both tools by name."""
        made = [FunctionTool(self.search_tools), FunctionTool(self.read_result)]
        return {
            tool.tool_id: Slot(tool, tool.definition, Entry(tool.tool_id, Service(), None), None, None) for tool in made
        }

    def _places(self, whole: str, start: int, find: str, language: str) -> str:
        places: list[int] = []
        at = whole.find(find, start)
        while at >= 0 and len(places) < _PLACES:
            places.append(at)
            at = whole.find(find, at + len(find))
        count = whole.count(find, start)
        lines = [sentences.found_in_result(find[:100], count, len(places), language)]
        lines += [f"{at}: …{whole[max(0, at - _AROUND) : at + len(find[:_AROUND]) + _AROUND]}…" for at in places]
        return "\n".join(lines)[: self._part]
