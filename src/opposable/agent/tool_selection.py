"""Which tools a run's model is told of: all while they are few, else those that fit."""

from collections.abc import Iterable, Sequence

from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition, ToolResult
from opposable.models.base import ModelOptions, Named
from opposable.tools.library import ToolLibrary
from opposable.tools.meta_tools import READ_RESULT, SEARCH_TOOLS


class Selection:
    """The tools of one run.

    Of a large library these are a tool to search it with, the ones that fit the task's words, and from then on those
    that were called or found: the order never changes, so that what a server has kept of the request stays good. A
    tool to read on in long results comes with the first one that was put aside.
    """

    def __init__(self, library: ToolLibrary, messages: Sequence[Message], options: ModelOptions) -> None:
        self._library = library
        self._aside = False
        self._names: dict[str, None] = {}
        self._made: tuple[int, int, tuple[ToolDefinition, ...]] | None = None
        if library.is_large:
            choice = options.tool_choice
            called = [call.name for message in messages for call in message.tool_calls]
            task = next((message.content for message in reversed(messages) if message.role == "user"), "")
            fitting = [found.name for found in library.search(task[:2000], library.showing.fitting)]
            self._add((SEARCH_TOOLS, *([choice.name] if isinstance(choice, Named) else ()), *called, *fitting))

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model is told: the same object until something changes."""
        if not self._aside and not self._names:
            return self._library.definitions
        state = (self._library.version, len(self._names) + self._aside)
        if self._made is None or self._made[:2] != state:
            self._made = (*state, self._defined())
        return self._made[2]

    def learn(self, results: Iterable[ToolResult]) -> None:
        """Take note of what calls brought: tools called, tools found, results put aside."""
        for result in results:
            self._aside = self._aside or bool(result.handle)
            if not self._names or result.failure is not None:
                continue
            if result.name == SEARCH_TOOLS:
                self._add(one["name"] for one in result.data["tools"])
            else:
                self._add((result.name,))

    def _add(self, names: Iterable[str]) -> None:
        self._names.update(dict.fromkeys(name for name in names if name != READ_RESULT))

    def _defined(self) -> tuple[ToolDefinition, ...]:
        base: Iterable[ToolDefinition] = self._library.definitions
        if self._names:
            found = [self._library.find(name) for name in self._names]
            base = {tool.definition.name: tool.definition for tool in found if tool is not None}.values()
        reading = self._library.find(READ_RESULT) if self._aside else None
        return (*base, reading.definition) if reading is not None else tuple(base)
