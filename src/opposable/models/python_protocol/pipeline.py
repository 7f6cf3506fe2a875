"""The steps from a request to tool calls, in their order.

`python evals/berkeley.py --ablate` measures what each step is worth.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from opposable.domain.errors import ModelRejected
from opposable.domain.messages import assistant_message
from opposable.models.base import request_reply
from opposable.models.python_protocol.attempt import Attempt
from opposable.models.python_protocol.call_acceptance import accept_calls, drop_dependent_calls
from opposable.models.python_protocol.call_reader import read_calls
from opposable.models.python_protocol.described_formats import pad_dates
from opposable.models.python_protocol.grammar import build_grammar
from opposable.models.python_protocol.prompts import CODE_FENCE, REPLY_PREFIX

TOP_LOGPROBS = 20
"""Alternatives requested for each token."""


async def write_calls(attempt: Attempt) -> Attempt:
    """Ask the model for calls, which a grammar enforces, and read them.

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
    grammar = build_grammar(attempt.tools, may_pass=attempt.may_pass)
    constrained = replace(options, extra_body={**options.extra_body, "grammar": grammar})
    messages = [*attempt.prompt, assistant_message(REPLY_PREFIX)]
    try:
        reply = await request_reply(attempt.model, messages, (), constrained)
    except ModelRejected:
        reply = await request_reply(attempt.model, messages, (), options)
    code = reply.message.content.removeprefix(REPLY_PREFIX)
    calls = read_calls(code, attempt.tools, is_truncated=reply.finish == "length")
    return replace(attempt, reply=reply, calls=calls)


PIPELINE: Mapping[str, Callable[[Attempt], Awaitable[Attempt]]] = {
    "reply": write_calls,
    "dependent_calls": drop_dependent_calls,
    "acceptance": accept_calls,
    "date_formats": pad_dates,
}
"""All steps by name, in their order: each returns the attempt that the next one gets. `reply` cannot be left out."""
