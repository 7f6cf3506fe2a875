"""Turns on their way into their conversations: many at once, each once, also over a store that is away for a while."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import BadInput, OpposableError, StoreError, StoreUnavailable
from opposable.domain.records import ConversationTurn
from opposable.store.conversations import ConversationRepository

MAX_RETRY_SECONDS = 60.0
"""Seconds for which a turn is tried again while the store is away."""
FIRST_RETRY_DELAY_SECONDS = 0.2
MAX_RETRY_DELAY_SECONDS = 1.0
MAX_TURNS_PER_BATCH = 200
"""Turns kept together."""


class TurnWriter:
    """Keeps turns: `async with Turns(...)`. Those that come while others are being written are written together."""

    def __init__(self, conversations: ConversationRepository, max_retry_seconds: float = MAX_RETRY_SECONDS) -> None:
        self._conversations = conversations
        self._max_retry_seconds = max_retry_seconds
        self._queue: list[tuple[ConversationTurn, asyncio.Future[None], float]] = []
        self._turns_queued = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "TurnWriter":
        self._task = asyncio.create_task(self._run(), name="turns")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def write(self, turn: ConversationTurn) -> None:
        """Returns when the turn is kept.

        Raises: `StoreUnavailable` when it could not be for `patience` seconds, `BadInput` when the conversation is
        another owner's, `StoreError`.
        """
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        self._queue.append((turn, kept, loop.time() + self._max_retry_seconds))
        self._turns_queued.set()
        await kept

    async def _run(self) -> None:
        while True:
            await self._turns_queued.wait()
            self._turns_queued.clear()
            while self._queue:
                batch, self._queue = self._queue[:MAX_TURNS_PER_BATCH], self._queue[MAX_TURNS_PER_BATCH:]
                await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[tuple[ConversationTurn, "asyncio.Future[None]", float]]) -> None:
        """Write a batch, again and again while the store is away; one that is refused does not hold up the others."""
        left, failed_attempts = list(batch), 0
        while left:
            try:
                refused = await self._conversations.append_turns(
                    [turn for turn, _, _ in left], skip_existing=failed_attempts > 0
                )
            except StoreUnavailable as error:
                left = _drop_expired(left, error)
                failed_attempts += 1
                await asyncio.sleep(
                    get_backoff_seconds(failed_attempts, FIRST_RETRY_DELAY_SECONDS, MAX_RETRY_DELAY_SECONDS)
                )
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                if len(left) > 1:
                    for one in left:
                        await self._write_batch([one])
                    return
                _resolve_future(
                    left[0][1], error if isinstance(error, OpposableError) else StoreError(type(error).__name__)
                )
                return
            else:
                for turn, kept, _ in left:
                    _resolve_future(kept, _conversation_not_found_error(turn) if turn.turn_id in refused else None)
                return


def _drop_expired(
    queued: Sequence[tuple[ConversationTurn, "asyncio.Future[None]", float]], error: StoreUnavailable
) -> list[tuple[ConversationTurn, "asyncio.Future[None]", float]]:
    """Those that may wait on; the others are told."""
    now = asyncio.get_running_loop().time()
    for _, kept, until in queued:
        if until <= now:
            _resolve_future(kept, error)
    return [one for one in queued if one[2] > now]


def _resolve_future(future: "asyncio.Future[None]", error: OpposableError | None) -> None:
    if future.done():  # nobody waits any more
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _conversation_not_found_error(turn: ConversationTurn) -> BadInput:
    return BadInput(f"There is no conversation {turn.conversation.conversation_id!r}; begin one with another id.")
