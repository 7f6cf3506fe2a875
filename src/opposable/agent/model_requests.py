"""The requests of a run to its model: messages within the context window, replies within the limits."""

from collections.abc import Sequence
from dataclasses import replace

from opposable.agent.history import estimate_text_tokens, estimate_tokens, trim_messages
from opposable.agent.limits import Limits
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.json_text import dump_json
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import ModelOptions

MIN_REPLY_TOKENS = 256
"""The tokens that a reply may always have: an answer at a limit needs some."""

MAX_BOUND_TOKENS = 8192
"""More tokens than this are not passed to the model: some servers reject a `max_tokens` above their own maximum."""


class ModelRequests:
    """The requests of one run: the messages that fit, the offered tools, and a reply of the length that is left."""

    def __init__(self, tools: ToolSelection, limits: Limits) -> None:
        self._tools = tools
        self._limits = limits
        self._context_window = limits.context
        self.is_reply_bounded = False

    def prepare(
        self, history: list[Message], usage: Usage
    ) -> tuple[Sequence[Message], Sequence[ToolDefinition], ModelOptions]:
        """Return the messages, tools and options of the next request, after replies with this usage."""
        messages = trim_messages(history, self._context_window)
        tools, limits, remaining = self._tools.definitions, self._limits, []
        if limits.tokens is not None:
            remaining.append(limits.tokens - usage.total_tokens - estimate_prompt_tokens(messages, tools))
        if limits.output_tokens is not None:
            remaining.append(limits.output_tokens - usage.output_tokens)
        options = lower_max_tokens(self._tools.options, min(remaining)) if remaining else self._tools.options
        self.is_reply_bounded = options is not self._tools.options
        return messages, tools, options

    def shrink_context(self, history: list[Message]) -> bool:
        """Halve the messages after a request that did not fit. Return whether it leaves out further messages."""
        sent = trim_messages(history, self._context_window)
        self._context_window = estimate_tokens(sent) // 2
        return trim_messages(history, self._context_window) != sent


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
