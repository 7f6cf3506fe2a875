"""The limits of a run, and the deadline that ends a wait when its time is used up."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from opposable.domain.errors import BadInput
from opposable.domain.events import CUT_OFF, FinishReason, StopReason
from opposable.domain.input_checks import require_at_least_zero
from opposable.domain.usage import Price, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; None is no limit.

    At a limit the model gets one more request, without tools, for its answer. After `seconds` there is no more request.
    The rest of the tokens bounds the length of each reply.

    Attributes:
        turns: Model replies.
        tool_calls: Tool calls.
        tokens: Tokens of all requests, input and output together.
        seconds: Wall time, without the time in which calls wait for human approval.
        context: Tokens of the context window. To fit it, older messages are left out, then the latest results are cut;
            by default only when the server reports that the messages do not fit.
        input_tokens: Input tokens of all requests.
        output_tokens: Output tokens of all requests.
        cost: Cost of all requests, in the currency of `price`.
        price: The price of the model. A limit on the cost needs it.
        noted_repeats: Calls in a row with the same arguments and the same result, from which each result has a note.
        repeats: Such calls that end the run with the model's best answer.

    Raises:
        BadInput: There is a `cost` without a `price`, or a limit is negative.
    """

    turns: int | None = 50
    tool_calls: int | None = 200
    tokens: int | None = None
    seconds: float | None = 600.0
    context: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    price: Price | None = None
    noted_repeats: int | None = 10
    repeats: int | None = 30

    def __post_init__(self) -> None:
        if self.cost is not None and self.price is None:
            raise BadInput("A limit on the cost needs the model's price. Pass `price`, for a million tokens.")
        require_at_least_zero("limit", self)


DEFAULT_LIMITS = Limits()


def find_exceeded_limit(limits: Limits, turn_count: int, call_count: int, usage: Usage) -> StopReason | None:
    """Return the limit that is used up, if any."""
    if limits.turns is not None and turn_count >= limits.turns:
        return "turns"
    if limits.tool_calls is not None and call_count >= limits.tool_calls:
        return "tool_calls"
    if count_remaining_tokens(limits, usage) <= 0:
        return "tokens"
    if limits.cost is not None and limits.price is not None and limits.price.compute_cost(usage) >= limits.cost:
        return "cost"
    return None


def find_stop_reason(finish: FinishReason, is_bounded: bool, limits: Limits, usage: Usage) -> StopReason:
    """Return why a run ended with a reply, whose length may have been bounded by the tokens that were left."""
    if (is_bounded and finish == "length") or count_remaining_tokens(limits, usage) < 0:
        return "tokens"
    return finish if finish in CUT_OFF else "answer"  # type: ignore[return-value]  # narrowed


def count_remaining_tokens(limits: Limits, usage: Usage) -> float:
    """Return the tokens that the limits leave: negative if a run has used more than allowed."""
    pairs = (
        (limits.tokens, usage.total_tokens),
        (limits.input_tokens, usage.input_tokens),
        (limits.output_tokens, usage.output_tokens),
    )
    return min((limit - used for limit, used in pairs if limit is not None), default=math.inf)


class DeadlineExceeded(Exception):
    """The time of a run is used up."""


class Deadline:
    """A deadline that interrupts what a run waits for with `DeadlineExceeded`.

    `asyncio.timeout` must not stay open across a `yield`, because it could cancel the consumer's code. A `Deadline`
    cancels only within `wait`, which adds almost no cost.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_task: asyncio.Task[Any] | None = None
        self._is_expired = False
        self._earlier_cancellations = 0  # of the waiting task, when the time was used up
        self._pause_count = 0

    def __enter__(self) -> "Deadline":
        if self._seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def wait(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Return what the function returns. Raises: `DeadlineExceeded` when the time is used up."""
        if self._is_expired:
            raise DeadlineExceeded
        self._waiting_task = task = asyncio.current_task()
        try:
            return await function(*args)
        except asyncio.CancelledError as error:
            if self._is_expired and task and task.cancelling() == self._earlier_cancellations + 1:
                raise DeadlineExceeded from error
            raise
        finally:
            self._waiting_task = None
            if self._is_expired and task:  # also if the function has caught the cancellation
                task.uncancel()

    async def wait_for_tools(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Return as `wait`. Raises: `CancelledError` also if a tool has caught a cancellation by the caller."""
        task = asyncio.current_task()
        earlier_cancellations = task.cancelling() if task else 0
        result = await self.wait(function, *args)
        if task and task.cancelling() > earlier_cancellations:
            raise asyncio.CancelledError
        return result

    def pause_during(self, function: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        """Return `function` so that the time of its calls does not count."""

        async def run_paused(*args: Any) -> T:
            loop, timer = asyncio.get_running_loop(), self._timer
            self._pause_count += 1
            if timer is not None and self._pause_count == 1:
                timer.cancel()
                self._seconds = timer.when() - loop.time()
            try:
                return await function(*args)
            finally:
                self._pause_count -= 1
                if self._seconds is not None and self._pause_count == 0:
                    self._timer = loop.call_later(self._seconds, self._expire)

        return run_paused

    def _expire(self) -> None:
        self._is_expired = True
        if self._waiting_task is not None:
            self._earlier_cancellations = self._waiting_task.cancelling()
            self._waiting_task.cancel()
