"""One request on its way to tool calls, and the code that the model writes for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opposable.domain.errors import ModelRejected
from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import Model, ModelOptions, request_reply
from opposable.models.python_protocol.prompts import CODE_FENCE, REPLY_PREFIX

TOP_LOGPROBS = 20
"""Alternatives requested for each token."""

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


async def generate_code(attempt: Attempt, grammar: str) -> tuple[str, Reply]:
    """Return the code that the model writes, and its reply.

    A server that rejects the grammar is asked without it. Raises: `ModelError`.
    """
    options = replace(
        attempt.options,
        stream=False,
        tool_choice="none",
        top_logprobs=TOP_LOGPROBS,
        response_schema=None,
        stop=(CODE_FENCE,),
    )
    messages = [*attempt.prompt, assistant_message(REPLY_PREFIX)]
    constrained = replace(options, extra_body={**options.extra_body, "grammar": grammar})
    try:
        reply = await request_reply(attempt.model, messages, (), constrained)
    except ModelRejected:
        reply = await request_reply(attempt.model, messages, (), options)
    return reply.message.content.removeprefix(REPLY_PREFIX), reply
