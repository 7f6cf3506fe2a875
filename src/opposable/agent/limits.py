"""How far a run may go, and an alarm that ends one wait at the limit of time."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from opposable.domain.errors import BadInput
from opposable.domain.events import StopReason
from opposable.domain.usage import Price, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; None is no limit.

    `turns` counts model replies, `tool_calls` calls made, `input_tokens` and `output_tokens` those of all requests and
    `tokens` both together, `cost` what they cost at `price`, `seconds` wall time. At a limit the model is asked once
    more for its answer, without tools; after `seconds` it is not asked any more. `context` is the window in tokens that the messages sent are trimmed to, the oldest going first;
    without it they are trimmed when a server says that they do not fit. Raises: `BadInput` for a cost without a price.
    """

    turns: int | None = 20
    tool_calls: int | None = 50
    tokens: int | None = None
    seconds: float | None = 600.0
    context: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.cost is not None and self.price is None:
            raise BadInput("A limit on the cost needs the model's price: what a million tokens cost, read and written.")


DEFAULT_LIMITS = Limits()


def find_exceeded_limit(limits: Limits, turn_count: int, call_count: int, usage: Usage) -> StopReason | None:
    """The limit that is used up, if any."""
    if limits.turns is not None and turn_count >= limits.turns:
        return "turns"
    if limits.tool_calls is not None and call_count >= limits.tool_calls:
        return "tool_calls"
    spent = (
        (limits.tokens, usage.total_tokens),
        (limits.input_tokens, usage.input_tokens),
        (limits.output_tokens, usage.output_tokens),
    )
    if any(most is not None and used >= most for most, used in spent):
        return "tokens"
    if limits.cost is not None and limits.price is not None and limits.price.compute_cost(usage) >= limits.cost:
        return "cost"
    return None


class DeadlineExceeded(Exception):
    """The alarm rang."""


class Deadline:
    """Ends a run's waiting when its time is used up, with `OutOfTime`.

    `asyncio.timeout` may not be held open across a `yield`: it could strike in the consumer's code. This one strikes
    only while the run itself waits, and costs next to nothing for each piece of a stream.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_task: asyncio.Task[Any] | None = None
        self._is_expired = False

    def __enter__(self) -> "Deadline":
        if self._seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def iterate(self, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """What `source` yields, which is closed at the end. Raises: `OutOfTime` once the alarm has rung."""
        try:
            while True:
                if self._is_expired:
                    raise DeadlineExceeded
                self._waiting_task = asyncio.current_task()
                try:
                    item = await anext(source)
                except StopAsyncIteration:
                    return
                except asyncio.CancelledError as error:
                    if self._is_expired and self._waiting_task is not None and self._waiting_task.uncancel() == 0:
                        raise DeadlineExceeded from error
                    raise
                finally:
                    self._waiting_task = None
                yield item
        finally:
            await source.aclose()

    def _expire(self) -> None:
        self._is_expired = True
        if self._waiting_task is not None:
            self._waiting_task.cancel()
