"""Token usage and its price."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model requests, as reported by the server.

    `cached_tokens` are the input tokens that were read from the server's cache, `reasoning_tokens` the output tokens
    of the reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def as_json(self) -> dict[str, int]:
        """Return tokens and requests as JSON; the cached and reasoning tokens only if there are any."""
        details = {"cached_tokens": self.cached_tokens, "reasoning_tokens": self.reasoning_tokens}
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "model_calls": self.requests,
            **{name: count for name, count in details.items() if count},
        }

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.requests + other.requests,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


NO_USAGE = Usage()


def parse_token_count(counts: Any, name: str) -> int:
    """Return a number of tokens from the counts that a server reports; 0 for anything that is none."""
    value = counts.get(name) if isinstance(counts, dict) else None
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a million input and output tokens, in any currency; `cached_input` is that of cached input tokens."""

    input: float
    output: float
    cached_input: float | None = None  # None: that of other input tokens

    def compute_cost(self, usage: Usage) -> float:
        """Return the cost of `usage`."""
        input_price = self.input if self.cached_input is None else self.cached_input
        cached = min(usage.cached_tokens, usage.input_tokens)
        uncached_cost = (usage.input_tokens - cached) * self.input
        return (uncached_cost + cached * input_price + usage.output_tokens * self.output) / 1_000_000
