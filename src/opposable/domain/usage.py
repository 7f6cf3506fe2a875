"""Token usage and its price."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model requests, as reported by the server."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0

    @property
    def total_tokens(self) -> int:
        """Sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def as_json(self) -> dict[str, int]:
        """Return tokens and requests as JSON."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "model_calls": self.requests,
        }

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.requests + other.requests,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a million input and output tokens, in any currency."""

    input: float
    output: float

    def compute_cost(self, usage: Usage) -> float:
        """Return the cost of `usage`."""
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1_000_000
