"""Selection of the tools that a run offers to the model."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from opposable.domain.language import Language
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition, ToolResult
from opposable.models.base import ForcedTool, ModelOptions
from opposable.tools.disclosure import join_names
from opposable.tools.failure_messages import unlisted_tools_note
from opposable.tools.library import ToolLibrary
from opposable.tools.meta_tools import READ_RESULT, SEARCH_TOOLS

MAX_FORCED_REPLIES = 3
"""A forced tool choice holds until a call succeeds, for this many replies at most."""


class ToolSelection:
    """The tools offered in one run, and the options of its requests, with the tool choice.

    From a large library these are a search tool that names the others, the tools that match the task, and later those
    that were called or found. The order never changes, so that the prompt cache of a server stays valid. The first
    stored long result, also of an earlier turn, adds a tool that reads the rest of it.
    """

    def __init__(
        self, library: ToolLibrary, messages: Sequence[Message], options: ModelOptions, language: Language = "en"
    ) -> None:
        self.library = library
        self.options = options
        self.is_partial = library.is_large
        self._language = language
        self._has_stored_results = any(READ_RESULT in message.content for message in messages if message.role == "tool")
        self._selected_names: dict[str, None] = {}
        self._unlisted_names = ""
        self._task = ""
        self._cached_definitions: tuple[int, int, tuple[ToolDefinition, ...]] | None = None
        if self.is_partial:
            choice = options.tool_choice
            called_names = [call.name for message in messages for call in message.tool_calls]
            self._task = next((message.content for message in reversed(messages) if message.role == "user"), "")[:2000]
            self._add_names((SEARCH_TOOLS, *([choice.name] if isinstance(choice, ForcedTool) else ()), *called_names))

    async def add_matching_tools(self) -> None:
        """Add the tools that match the task, and list the names of the others. Call it once, before the first turn."""
        matches = await self.library.search_by_meaning(self._task, self.library.disclosure.max_matches)
        self._add_names(match.name for match in matches)
        names = [name for name in self.library.names if name not in self._selected_names]
        self._unlisted_names = join_names(names, self.library.max_definition_tokens)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions to send: the same object until something changes."""
        if not self._has_stored_results and not self.is_partial:
            return self.library.definitions
        state = (self.library.version, len(self._selected_names) + self._has_stored_results)
        if self._cached_definitions is None or self._cached_definitions[:2] != state:
            self._cached_definitions = (*state, self._build_definitions())
        return self._cached_definitions[2]

    def update_from_results(self, results: Iterable[ToolResult], turn: int) -> None:
        """Add the tools that were called or found, and end a forced choice that was followed."""
        if self.options.tool_choice not in ("auto", "none") and (
            turn >= MAX_FORCED_REPLIES or any(not result.failure for result in results)
        ):
            self.options = replace(self.options, tool_choice="auto")
        for result in results:
            self._has_stored_results = self._has_stored_results or bool(result.handle)
            if not self.is_partial or result.failure is not None:
                continue
            if result.name == SEARCH_TOOLS:
                self._add_names(match["name"] for match in result.data["tools"])
            else:
                self._add_names((result.name,))

    def _add_names(self, names: Iterable[str]) -> None:
        self._selected_names.update(dict.fromkeys(name for name in names if name != READ_RESULT))

    def _build_definitions(self) -> tuple[ToolDefinition, ...]:
        if not self.is_partial:
            definitions: Iterable[ToolDefinition] = self.library.definitions
        else:
            tools = [self.library.find_tool(name) for name in self._selected_names]
            known = {tool.definition.name: tool.definition for tool in tools if tool is not None}
            if self._unlisted_names:
                note = unlisted_tools_note(self._unlisted_names, self._language)
                search = known[SEARCH_TOOLS]
                known[SEARCH_TOOLS] = replace(search, description=f"{search.description}\n\n{note}")
            definitions = known.values()
        result_reader = self.library.find_tool(READ_RESULT) if self._has_stored_results else None
        return (*definitions, result_reader.definition) if result_reader is not None else tuple(definitions)
