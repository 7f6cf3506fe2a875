"""The steps from a request to tool calls, in their order.

`python evals/berkeley.py --ablate` measures what each step is worth.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from opposable.domain.errors import ModelRejected
from opposable.domain.events import Reply
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import Model, ModelOptions, request_reply
from opposable.models.python_protocol.call_acceptance import (
    drop_dependent_calls,
    get_no_call_logprob,
    get_total_logprob,
    is_acceptable,
    load_weights,
)
from opposable.models.python_protocol.call_reader import read_calls
from opposable.models.python_protocol.grammar import build_grammar
from opposable.models.python_protocol.prompts import CODE_FENCE, REPLY_PREFIX

TOP_LOGPROBS = 20
"""Alternatives requested for each token."""

UNLIKELY_LOGPROB = -4.0
"""Below this log-probability (2 %) a reply is sampled again: a grammar can leave only unlikely ends of a likely begin."""
SAMPLE_COUNT = 8
SAMPLING_TEMPERATURE = 0.8

OPTIONAL_STEPS = ("samples", "dependent_calls", "acceptance")
"""The steps that can be left out."""


async def generate_calls(
    model: Model,
    prompt: Sequence[Message],
    tools: Sequence[ToolDefinition],
    options: ModelOptions,
    *,
    conversation: str,
    choice_prompt: Sequence[Message] = (),
    without: Collection[str] = (),
) -> tuple[Reply, Sequence[ToolCall]]:
    """Ask the model for calls, which a grammar enforces, and return its reply and the calls to make.

    The no-call option is offered in a request of its own, since a model that may also write no call writes worse
    arguments. A server that rejects the grammar is asked without it.

    Args:
        model: The model that writes the code.
        prompt: The messages, without the beginning of the reply.
        tools: The tools that may be called.
        options: The options of the request.
        conversation: The text of all messages.
        choice_prompt: The messages with the no-call option; none if calls must be made.
        without: The optional steps to leave out.

    Raises:
        ModelError: The request failed.
    """
    options = replace(
        options, stream=False, tool_choice="none", top_logprobs=TOP_LOGPROBS, response_schema=None, stop=(CODE_FENCE,)
    )
    begun = assistant_message(REPLY_PREFIX)
    choice = None
    if choice_prompt:
        choice = await request_reply(model, [*choice_prompt, begun], (), replace(options, max_tokens=1))
        if -get_no_call_logprob(choice) < load_weights()["min_no_call_distance"]:
            return choice, ()  # the model need not write calls
    try:
        constrained = replace(options, extra_body={**options.extra_body, "grammar": build_grammar(tools)})
        reply = await request_reply(model, [*prompt, begun], (), constrained)
        if "samples" not in without and reply.finish != "length":
            reply = await _sample_unlikely(reply, model, [*prompt, begun], constrained)
    except ModelRejected:
        reply = await request_reply(model, [*prompt, begun], (), options)
    code = reply.message.content.removeprefix(REPLY_PREFIX)
    calls: Sequence[ToolCall] = read_calls(code, tools, is_truncated=reply.finish == "length")
    if choice_prompt and "dependent_calls" not in without:
        calls = drop_dependent_calls(calls, tools, conversation)
    if choice is not None:
        reply = replace(reply, usage=choice.usage + reply.usage)
        if "acceptance" not in without and not is_acceptable(choice, reply, calls, tools, conversation):
            calls = ()
    return reply, calls


async def _sample_unlikely(reply: Reply, model: Model, prompt: Sequence[Message], options: ModelOptions) -> Reply:
    """Return the likeliest of an unlikely reply and its samples, with the usage of all."""
    best, usage = reply, reply.usage
    for seed in range(1, SAMPLE_COUNT + 1):
        if get_total_logprob(best) >= UNLIKELY_LOGPROB:
            break
        sample = await request_reply(model, prompt, (), replace(options, temperature=SAMPLING_TEMPERATURE, seed=seed))
        best, usage = max(best, sample, key=get_total_logprob), usage + sample.usage
    return replace(best, usage=usage)
