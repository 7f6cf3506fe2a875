"""Facts about the tools of a run, such as which only read."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opposable.agent.assistance.execution_context import ExecutionContext
from opposable.agent.assistance.grounding import get_content_words
from opposable.agent.failure_recorder import split_tool_id
from opposable.domain.language import split_words
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ForcedTool
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # specs are pydantic's, and only a run in trouble asks for them
    from opposable.domain.specs import AnyToolSpec

POLLING_METADATA_KEY = "polling"
"""In the metadata of a spec, true: the tool is polled on purpose."""


_MAX_CHARACTERS_READ = 2_000
"""Characters of a request that are read."""
_MIN_PREFIX_CHARACTERS = 4
"""Letters from which a prefix identifies a word."""
_READING_VERBS = frozenset("get list read show find search look fetch load view check all".split())  # noqa: SIM905
"""Verbs of tools that read."""


class ToolFacts:
    """Facts about the tools of a library, by tool name."""

    def __init__(self, library: ToolLibrary, context: ExecutionContext) -> None:
        self._library = library
        self._context = context
        self._tools_by_word: dict[str, list[ToolDefinition]] | None = None
        self._words_by_tool: list[tuple[ToolDefinition, frozenset[str]]] | None = None
        self._provided_fields: dict[str, tuple[str, ...]] = {}

    def get_tool_id(self, name: str) -> str:
        """Return the id of a tool with its action."""
        tool = self._library.find_tool(name)
        return name if tool is None else tool.tool_id

    def get_parameters(self, name: str) -> dict[str, Any]:
        """Return the JSON Schema of a tool."""
        tool = self._library.find_tool(name)
        return {} if tool is None else tool.definition.parameters

    def get_owner(self, tool_id: str) -> tuple[str, str]:
        """Return the id a tool is registered by, and its action."""
        return split_tool_id(self._library, tool_id)

    def get_spec(self, name: str) -> "AnyToolSpec | None":
        """Return the spec of a tool."""
        return self._library.get_spec(self.get_owner(self.get_tool_id(name))[0])

    def is_polling(self, name: str) -> bool:
        """Return whether a tool is polled on purpose."""
        spec = self.get_spec(name)
        return spec is not None and bool(spec.metadata.get(POLLING_METADATA_KEY))

    def is_read_only(self, name: str) -> bool:
        """Return whether a tool changes nothing."""
        traits = self._library.get_traits(name)
        return traits is not None and traits.read_only

    def was_called(self, name: str) -> bool:
        """Return whether the model has called a tool in this run."""
        return name in self._context.successes_by_tool

    def count_successes(self, name: str) -> int:
        """Return how many calls of a tool succeeded in this run."""
        return self._context.successes_by_tool.get(name, 0)

    def can_call_unprompted(self, name: str) -> bool:
        """Return whether a follow-up may ask for the tool.

        Such a tool only reads and needs no approval.
        """
        spec = self.get_spec(name)
        return spec is not None and not spec.needs_approval and self.is_read_only(name)

    def list_missing_dependencies(self, name: str) -> tuple[str, ...]:
        """Return the dependencies of a tool that are not available."""
        owner = self.get_owner(self.get_tool_id(name))[0]
        return () if self._library.get_spec(owner) is None else self._library.get_health(owner).missing_dependencies

    def get_polling_call(self, arguments: Mapping[str, Any]) -> ForcedTool | None:
        """Return the call of the only polling tool, with the arguments both share."""
        polling = [tool.definition for tool in self._library.tools if self.is_polling(tool.definition.name)]
        if len(polling) != 1:
            return None
        known = polling[0].parameters.get("properties", {})
        return ForcedTool(polling[0].name, {name: value for name, value in arguments.items() if name in known})

    def find_equivalent_call(self, call: ForcedTool) -> ForcedTool | None:
        """Return the same call of another read-only tool that was not called yet."""
        if not self.can_call_unprompted(call.name):
            return None
        needs = f"{call.name} {self._context.task[:500]}"
        owner = self.get_owner(self.get_tool_id(call.name))[0]
        for found in self._library.find_alternatives(owner, needs, limit=8):
            schema = self.get_parameters(found.name)
            fits = set(schema.get("required", ())) <= set(call.arguments) <= set(schema.get("properties", {}))
            if not self.was_called(found.name) and call.arguments and fits and self.can_call_unprompted(found.name):
                return ForcedTool(found.name, dict(call.arguments))
        return None

    def find_provider_calls(
        self, call: ForcedTool, field: str, *, allow_missing_arguments: bool = False
    ) -> list[ForcedTool]:
        """Return calls of unused read-only tools whose names match an argument."""
        found = []
        about = get_content_words(field)
        for tool in self._find_by_name(about) or self._find_by_description(about):
            name, schema = tool.name, tool.parameters
            required = set(schema.get("required", ()))
            if name == call.name or field in required or self.was_called(name) or not self.can_call_unprompted(name):
                continue
            known = {one: call.arguments[one] for one in schema.get("properties", {}) if one in call.arguments}
            if allow_missing_arguments or required <= set(known):
                found.append(ForcedTool(name, known))
        return found

    def list_provided_fields(self, name: str) -> tuple[str, ...]:
        """Return the required arguments of a changing tool that other tools can provide."""
        if name not in self._provided_fields:
            fields = () if self.is_read_only(name) else self.get_parameters(name).get("required", ())
            self._provided_fields[name] = tuple(
                field
                for field in fields
                if self.find_provider_calls(ForcedTool(name), field, allow_missing_arguments=True)
            )
        return self._provided_fields[name]

    def _find_by_name(self, name_words: Iterable[str]) -> list[ToolDefinition]:
        """Return the tools whose names contain one of these words."""
        if self._tools_by_word is None:
            self._tools_by_word = {}
            for tool in self._library.tools:
                for word in get_content_words(tool.definition.name):
                    self._tools_by_word.setdefault(word, []).append(tool.definition)
        found = {tool.name: tool for word in sorted(name_words) for tool in self._tools_by_word.get(word, ())}
        return list(found.values())

    def _find_by_description(self, field_words: Iterable[str]) -> list[ToolDefinition]:
        """Return the tools whose first sentence contains one of these words."""
        if self._library.is_large:
            return []
        if self._words_by_tool is None:
            self._words_by_tool = [
                (tool.definition, frozenset(split_words(_get_first_sentence(tool.definition.description))))
                for tool in self._library.tools
            ]
        longer = tuple(word for word in field_words if len(word) >= _MIN_PREFIX_CHARACTERS)
        return [tool for tool, held in self._words_by_tool if longer and any(word.startswith(longer) for word in held)]

    def find_overview_call(self, request: str) -> ForcedTool | None:
        """Return the call of a read-only tool without arguments that matches a request."""
        for tool in self._find_by_name(get_content_words(request[:_MAX_CHARACTERS_READ]) - _READING_VERBS):
            if not tool.parameters.get("required") and self.can_call_unprompted(tool.name):
                return ForcedTool(tool.name)
        return None


def _get_first_sentence(description: str) -> str:
    """Return the first sentence of a description."""
    return description[:_MAX_CHARACTERS_READ].strip().partition("\n")[0].partition(". ")[0]
