"""How many tools of a library are sent to a model."""

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_CONTEXT_TOKENS = 128_000
"""The context window that is assumed for a model of unknown size."""


@dataclass(frozen=True, slots=True)
class ToolDisclosure:
    """When a model gets only some of the tools.

    A library whose definitions have at most `max_tokens` tokens is sent whole. Of a larger one, the model gets a search
    tool, the `max_matches` tools that match its task best, and the names of the others.

    Attributes:
        max_tokens: Tokens of definitions that are sent; None for a tenth of the model's context window.
        max_matches: The number of matching tools.
    """

    max_tokens: int | None = None
    max_matches: int = 8

    def get_max_tokens(self, context_window: int | None) -> int:
        """Return the tokens of definitions that are sent to a model with this context window."""
        if self.max_tokens is not None:
            return self.max_tokens
        return (context_window or DEFAULT_CONTEXT_TOKENS) // 10


def join_names(names: Sequence[str], max_tokens: int) -> str:
    """Join names in at most `max_tokens` tokens, a quarter of their characters; what is too much is counted."""
    shown: list[str] = []
    remaining_characters = 4 * max_tokens
    for name in names:
        remaining_characters -= len(name) + 2
        if remaining_characters < 0:
            break
        shown.append(name)
    left_out = len(names) - len(shown)
    return ", ".join(shown) + (f" … (+{left_out})" if left_out else "")
