"""The steps from a request to tool calls, in their order.

`python evals/berkeley.py --ablate` measures what each step is worth.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace

from opposable.models.python_protocol.attempt import Attempt, generate_code
from opposable.models.python_protocol.call_acceptance import accept_calls, drop_dependent_calls
from opposable.models.python_protocol.call_reader import read_calls
from opposable.models.python_protocol.described_formats import pad_dates
from opposable.models.python_protocol.grammar import build_grammar


async def write_calls(attempt: Attempt) -> Attempt:
    """Ask the model for calls, which a grammar enforces, and read them."""
    code, reply = await generate_code(attempt, build_grammar(attempt.tools, may_pass=attempt.may_pass))
    calls = read_calls(code, attempt.tools, is_truncated=reply.finish == "length")
    return replace(attempt, reply=reply, calls=calls)


PIPELINE: Mapping[str, Callable[[Attempt], Awaitable[Attempt]]] = {
    "reply": write_calls,
    "dependent_calls": drop_dependent_calls,
    "acceptance": accept_calls,
    "date_formats": pad_dates,
}
"""All steps by name, in their order: each returns the attempt that the next one gets. `reply` cannot be left out."""


async def run_pipeline(attempt: Attempt, without: Collection[str] = ()) -> Attempt:
    """Run the steps on an attempt. Raises: `ModelError`.

    Args:
        attempt: The request.
        without: The names of the steps that are left out.
    """
    for name, apply in PIPELINE.items():
        if name not in without:
            attempt = await apply(attempt)
    return attempt
