"""A tool found by a search."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opposable.tools.registry import RegisteredTool, RegistryEntry

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AnyToolSpec


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A tool found by a search. Scores are comparable within one search only."""

    name: str
    tool_id: str
    action: str
    description: str
    score: float
    _entry: RegistryEntry = field(repr=False)

    @property
    def spec(self) -> "AnyToolSpec":
        """The spec of the tool."""
        return self._entry.spec


def to_match(tool: RegisteredTool, score: float) -> ToolMatch:
    """Return a found tool with its score."""
    entry = tool.entry
    return ToolMatch(tool.name, entry.tool_id, tool.action, tool.outline.description, score, entry)


def get_priority_key(tool: RegisteredTool) -> tuple[float, ...]:
    """Return a sort key that puts the higher priority first."""
    spec = tool.entry.declared_spec
    return (-(spec.priority if spec is not None else 1),)
