"""One request on its way to tool calls."""

from collections.abc import Sequence
from dataclasses import dataclass

from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import Model, ModelOptions

NO_REPLY = Reply(assistant_message(""))
"""The reply of an attempt before its first one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a step of the pipeline takes and returns.

    Attributes:
        model: The model that writes the code.
        prompt: The messages, without the beginning of the reply.
        tools: The tools that may be called.
        may_pass: Whether the no-call option is offered.
        conversation: The text of all messages.
        options: The options of the request.
        reply: The reply of the model.
        calls: The calls to make.
    """

    model: Model
    prompt: Sequence[Message]
    tools: Sequence[ToolDefinition]
    may_pass: bool
    conversation: str
    options: ModelOptions
    reply: Reply = NO_REPLY
    calls: tuple[ToolCall, ...] = ()
