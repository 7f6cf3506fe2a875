"""How many tools of a library are sent to a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolDisclosure:
    """When a model gets only some of the tools.

    A library with at most `max_tools` tools of at most `max_tokens` tokens in all is sent whole. Of a larger one, the
    model gets a search tool and the `max_matches` tools that match its task best.
    """

    max_tools: int = 40
    max_tokens: int = 8_000
    max_matches: int = 8
