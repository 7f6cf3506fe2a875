"""The size of requests and replies, in tokens."""

from collections.abc import Sequence
from dataclasses import replace

from opposable.agent.history import estimate_text_tokens, estimate_tokens
from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ModelOptions

MIN_REPLY_TOKENS = 256
"""The tokens that a reply may always have: an answer at a limit needs some."""

MAX_BOUND_TOKENS = 8192
"""More tokens than this are not passed to the model: some servers reject a `max_tokens` above their own maximum."""


def lower_max_tokens(options: ModelOptions, remaining: int) -> ModelOptions:
    """Return the options with `max_tokens` of at most `remaining`, but at least `MIN_REPLY_TOKENS`."""
    bound = max(remaining, MIN_REPLY_TOKENS)
    if bound >= (MAX_BOUND_TOKENS if options.max_tokens is None else options.max_tokens):
        return options
    return replace(options, max_tokens=bound)


def estimate_prompt_tokens(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> int:
    """Estimate the tokens of a request."""
    return estimate_tokens(messages) + sum(
        8 + estimate_text_tokens(tool.description) + len(dump_json(tool.parameters)) // 4 for tool in tools
    )
