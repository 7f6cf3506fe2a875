"""Which tools a run's model is told of: all while they are few, else those that fit."""

from collections.abc import Iterable, Sequence

from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition, ToolResult
from opposable.models.base import ForcedTool, ModelOptions
from opposable.tools.library import ToolLibrary
from opposable.tools.meta_tools import READ_RESULT, SEARCH_TOOLS


class ToolSelection:
    """The tools of one run.

    Of a large library these are a tool to search it with, the ones that fit the task's words, and from then on those
    that were called or found: the order never changes, so that what a server has kept of the request stays good. A
    tool to read on in long results comes with the first one that was put aside.
    """

    def __init__(self, library: ToolLibrary, messages: Sequence[Message], options: ModelOptions) -> None:
        self._library = library
        self._has_stored_results = False
        self._selected_names: dict[str, None] = {}
        self._cached_definitions: tuple[int, int, tuple[ToolDefinition, ...]] | None = None
        if library.is_large:
            choice = options.tool_choice
            called = [call.name for message in messages for call in message.tool_calls]
            task = next((message.content for message in reversed(messages) if message.role == "user"), "")
            fitting = [found.name for found in library.search(task[:2000], library.disclosure.max_matches)]
            self._add_names(
                (SEARCH_TOOLS, *([choice.name] if isinstance(choice, ForcedTool) else ()), *called, *fitting)
            )

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model is told: the same object until something changes."""
        if not self._has_stored_results and not self._selected_names:
            return self._library.definitions
        state = (self._library.version, len(self._selected_names) + self._has_stored_results)
        if self._cached_definitions is None or self._cached_definitions[:2] != state:
            self._cached_definitions = (*state, self._build_definitions())
        return self._cached_definitions[2]

    def update_from_results(self, results: Iterable[ToolResult]) -> None:
        """Take note of what calls brought: tools called, tools found, results put aside."""
        for result in results:
            self._has_stored_results = self._has_stored_results or bool(result.handle)
            if not self._selected_names or result.failure is not None:
                continue
            if result.name == SEARCH_TOOLS:
                self._add_names(one["name"] for one in result.data["tools"])
            else:
                self._add_names((result.name,))

    def _add_names(self, names: Iterable[str]) -> None:
        self._selected_names.update(dict.fromkeys(name for name in names if name != READ_RESULT))

    def _build_definitions(self) -> tuple[ToolDefinition, ...]:
        base: Iterable[ToolDefinition] = self._library.definitions
        if self._selected_names:
            found = [self._library.find_tool(name) for name in self._selected_names]
            base = {tool.definition.name: tool.definition for tool in found if tool is not None}.values()
        reading = self._library.find_tool(READ_RESULT) if self._has_stored_results else None
        return (*base, reading.definition) if reading is not None else tuple(base)
