"""The steps from a request to tool calls, in their order.

`python evals/berkeley.py --ablate` measures what each step is worth.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace

from opposable.models.python_protocol.attempt import Attempt, generate_code
from opposable.models.python_protocol.call_acceptance import accept_calls, drop_dependent_calls
from opposable.models.python_protocol.call_reader import read_calls
from opposable.models.python_protocol.described_formats import pad_dates
from opposable.models.python_protocol.grammar import build_grammar


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """A step of the pipeline.

    Attributes:
        name: The name, by which an ablation leaves the step out.
        purpose: What the step does, in a line.
        apply: The step. It returns the attempt that the next step gets.
    """

    name: str
    purpose: str
    apply: Callable[[Attempt], Awaitable[Attempt]]


async def write_calls(attempt: Attempt) -> Attempt:
    """Ask the model for calls, which a grammar enforces, and read them."""
    code, reply = await generate_code(attempt, build_grammar(attempt.tools, may_pass=attempt.may_pass))
    calls = read_calls(code, attempt.tools, is_truncated=reply.finish == "length")
    return replace(attempt, reply=reply, calls=calls)


PIPELINE: tuple[PipelineStep, ...] = (
    PipelineStep("reply", "ask the model for calls, which a grammar enforces, and read them", write_calls),
    PipelineStep(
        "dependent_calls",
        "of calls of several tools, leave out those whose values the request lacks",
        drop_dependent_calls,
    ),
    PipelineStep(
        "acceptance", "make no call where the model is unsure or the values are not in the request", accept_calls
    ),
    PipelineStep("date_formats", "write days and months with the digits of the described date format", pad_dates),
)
"""All steps. Only `reply` cannot be left out."""


async def run_pipeline(attempt: Attempt, without: Collection[str] = ()) -> Attempt:
    """Run the steps on an attempt. Raises: `ModelError`.

    Args:
        attempt: The request.
        without: The names of the steps that are left out.
    """
    for step in PIPELINE:
        if step.name not in without:
            attempt = await step.apply(attempt)
    return attempt
