"""Searches of a registry, and the tools that they find."""

import asyncio
import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opposable.tools.health import is_in_service
from opposable.tools.registry import RegisteredTool, Registry, RegistryEntry, summarize_tool
from opposable.tools.sentence_encoder import get_encoder
from opposable.tools.tool_search import extract_terms

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AnyToolSpec

MAX_WORD_WEIGHT = 0.3
"""Added to the similarity in meaning of the tool that matches the words of a need best, where all words are known.

Of 0.1 to 1.0, 0.3 puts the right tool first most often for the development needs of `evals/tool_search`.
"""


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


def search_by_words(registry: Registry, query: str, limit: int) -> list[ToolMatch]:
    """Return the enabled tools whose texts match best. Among equal scores the higher `priority` comes first."""
    return [_to_match(tool, score) for tool, score in registry.index.search(query, limit, _get_priority_key)]


async def search_by_meaning(registry: Registry, need: str, limit: int) -> list[ToolMatch]:
    """Return the enabled tools whose meaning and words match best; by words alone without the extra `search`."""
    encoder, tools = get_encoder(), registry.enabled_tools
    if encoder is None or not tools or not extract_terms(need):
        return search_by_words(registry, need, limit)
    similarities = await asyncio.to_thread(encoder.compare, need, [summarize_tool(tool) for tool in tools])
    scores = dict(zip(tools, similarities, strict=True))
    matches_by_words = registry.index.search(need, len(tools), _get_priority_key)
    word_weight = MAX_WORD_WEIGHT * registry.index.get_known_share(need)
    for tool, score in matches_by_words:
        scores[tool] = scores.get(tool, 0.0) + word_weight * score / matches_by_words[0][1]
    best = heapq.nsmallest(limit, scores.items(), key=lambda item: (-item[1], *_get_priority_key(item[0])))
    return [_to_match(tool, score) for tool, score in best]


def find_alternatives(
    registry: Registry, tool_id: str, query: str, failed_tool_ids: Iterable[str], limit: int
) -> list[ToolMatch]:
    """Return tools in service that may replace one; see `ToolLibrary.find_alternatives`."""
    entry = registry.entries.get(tool_id)
    if not query and entry is not None:
        descriptions = (tool.outline.description for tool in entry.tools)
        query = " ".join((entry.spec.description, *entry.spec.tags, *descriptions))
    excluded_ids = {tool_id, *failed_tool_ids}
    matches = [
        _to_match(tool, score)
        for tool, score in registry.index.search(query, limit + 20 + 4 * len(excluded_ids), _get_priority_key)
        if tool.entry.tool_id not in excluded_ids and is_in_service(tool)
    ]
    return matches[:limit]


def _to_match(tool: RegisteredTool, score: float) -> ToolMatch:
    """Return a found tool with its score."""
    entry = tool.entry
    return ToolMatch(tool.name, entry.tool_id, tool.action, tool.outline.description, score, entry)


def _get_priority_key(tool: RegisteredTool) -> tuple[float, ...]:
    """Return a sort key that puts the higher priority first."""
    spec = tool.entry.declared_spec
    return (-(spec.priority if spec is not None else 1),)
