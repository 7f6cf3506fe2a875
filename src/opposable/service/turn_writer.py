"""A background writer of conversation turns, with batches and retries."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import OpposableError, StoreError, StoreUnavailable
from opposable.domain.records import ConversationTurn
from opposable.service.background import run_in_background
from opposable.store.conversations import ConversationRepository, scope_turn

MAX_RETRY_SECONDS = 60.0
"""Seconds for which a turn is retried while the store is unavailable."""
FIRST_RETRY_DELAY_SECONDS = 0.2
MAX_RETRY_DELAY_SECONDS = 1.0
MAX_TURNS_PER_BATCH = 200


@dataclass(frozen=True, slots=True)
class _QueuedTurn:
    """A turn to write, the future of its caller, and when to stop retrying.

    The deadline is on the clock of the event loop.
    """

    turn: ConversationTurn
    future: "asyncio.Future[None]"
    deadline: float


class TurnWriter:
    """Writes turns while the block of `run` runs.

    Turns that arrive during a write form the next batch.
    """

    def __init__(self, conversations: ConversationRepository) -> None:
        self._conversations = conversations
        self._queue: list[_QueuedTurn] = []
        self._turns_queued = asyncio.Event()

    def run(self) -> AbstractAsyncContextManager[None]:
        """Write the queued turns while the block runs."""
        return run_in_background(self._write_turns(), "turns")

    async def write(self, turn: ConversationTurn) -> None:
        """Write a turn and return when it is stored.

        If another owner has stored a conversation with its id since the run began, the turn gets one of its own.

        Raises:
            StoreUnavailable: If the store stays unavailable for `MAX_RETRY_SECONDS`.
            StoreError: If the store rejects the turn.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._queue.append(_QueuedTurn(turn, future, loop.time() + MAX_RETRY_SECONDS))
        self._turns_queued.set()
        await future

    async def _write_turns(self) -> None:
        while True:
            await self._turns_queued.wait()
            self._turns_queued.clear()
            while self._queue:
                batch, self._queue = self._queue[:MAX_TURNS_PER_BATCH], self._queue[MAX_TURNS_PER_BATCH:]
                await self._write_batch(batch)

    async def _write_batch(self, batch: Sequence[_QueuedTurn]) -> None:
        """Write a batch, with retries. If it fails as a whole, write its turns one by one."""
        remaining, failed_attempts = list(batch), 0
        while remaining:
            try:
                rejected_ids = await self._conversations.append_turns(
                    [queued.turn for queued in remaining], skip_existing=failed_attempts > 0
                )
            except StoreUnavailable as error:
                remaining = _drop_expired(remaining, error)
                failed_attempts += 1
                await asyncio.sleep(
                    get_backoff_seconds(failed_attempts, FIRST_RETRY_DELAY_SECONDS, MAX_RETRY_DELAY_SECONDS)
                )
            except Exception as error:  # noqa: BLE001 - the error goes to the callers of `write`
                if len(remaining) > 1:
                    for queued in remaining:
                        await self._write_batch([queued])
                    return
                store_error = error if isinstance(error, OpposableError) else StoreError(type(error).__name__)
                _resolve_future(remaining[0].future, store_error)
                return
            else:
                for queued in remaining:
                    if queued.turn.turn_id in rejected_ids:
                        self._queue.append(replace(queued, turn=scope_turn(queued.turn)))
                    else:
                        _resolve_future(queued.future, None)
                return


def _drop_expired(queued_turns: Sequence[_QueuedTurn], error: StoreUnavailable) -> list[_QueuedTurn]:
    """Fail the turns whose deadline has passed, and return the others."""
    now = asyncio.get_running_loop().time()
    for queued in queued_turns:
        if queued.deadline <= now:
            _resolve_future(queued.future, error)
    return [queued for queued in queued_turns if queued.deadline > now]


def _resolve_future(future: "asyncio.Future[None]", error: OpposableError | None) -> None:
    if future.done():  # its caller was cancelled
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
