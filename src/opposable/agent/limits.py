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


def reached(limits: Limits, turns: int, calls: int, usage: Usage) -> StopReason | None:
    """The limit that is used up, if any."""
    if limits.turns is not None and turns >= limits.turns:
        return "turns"
    if limits.tool_calls is not None and calls >= limits.tool_calls:
        return "tool_calls"
    spent = (
        (limits.tokens, usage.total_tokens),
        (limits.input_tokens, usage.input_tokens),
        (limits.output_tokens, usage.output_tokens),
    )
    if any(most is not None and used >= most for most, used in spent):
        return "tokens"
    if limits.cost is not None and limits.price is not None and limits.price.of(usage) >= limits.cost:
        return "cost"
    return None


class OutOfTime(Exception):
    """The alarm rang."""


class Alarm:
    """Ends a run's waiting when its time is used up, with `OutOfTime`.

    `asyncio.timeout` may not be held open across a `yield`: it could strike in the consumer's code. This one strikes
    only while the run itself waits, and costs next to nothing for each piece of a stream.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._handle: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._rang = False

    def __enter__(self) -> "Alarm":
        if self._seconds is not None:
            self._handle = asyncio.get_running_loop().call_later(self._seconds, self._ring)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()

    async def each(self, source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """What `source` yields, which is closed at the end. Raises: `OutOfTime` once the alarm has rung."""
        try:
            while True:
                if self._rang:
                    raise OutOfTime
                self._waiting = asyncio.current_task()
                try:
                    item = await anext(source)
                except StopAsyncIteration:
                    return
                except asyncio.CancelledError as error:
                    if self._rang and self._waiting is not None and self._waiting.uncancel() == 0:
                        raise OutOfTime from error
                    raise
                finally:
                    self._waiting = None
                yield item
        finally:
            await source.aclose()

    def _ring(self) -> None:
        self._rang = True
        if self._waiting is not None:
            self._waiting.cancel()
