"""Turns on their way into their conversations: many at once, each once, also over a store that is away for a while."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from opposable.domain.errors import BadInput, OpposableError, StoreError, StoreUnavailable
from opposable.domain.records import Turn
from opposable.store.conversations import Conversations

PATIENCE = 60.0
"""Seconds for which a turn is tried again while the store is away."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
MOST = 200
"""Turns kept together."""


class Turns:
    """Keeps turns: `async with Turns(...)`. Those that come while others are being written are written together."""

    def __init__(self, conversations: Conversations, patience: float = PATIENCE) -> None:
        self._conversations = conversations
        self._patience = patience
        self._waiting: list[tuple[Turn, asyncio.Future[None], float]] = []
        self._there = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Turns":
        self._owner = asyncio.create_task(self._work(), name="turns")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._owner is not None
        self._owner.cancel()
        with suppress(asyncio.CancelledError):
            await self._owner

    async def keep(self, turn: Turn) -> None:
        """Returns when the turn is kept.

        Raises: `StoreUnavailable` when it could not be for `patience` seconds, `BadInput` when the conversation is
        another owner's, `StoreError`.
        """
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        self._waiting.append((turn, kept, loop.time() + self._patience))
        self._there.set()
        await kept

    async def _work(self) -> None:
        while True:
            await self._there.wait()
            self._there.clear()
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                await self._keep(batch)

    async def _keep(self, batch: Sequence[tuple[Turn, "asyncio.Future[None]", float]]) -> None:
        """Write a batch, again and again while the store is away; one that is refused does not hold up the others."""
        left, again, pause = list(batch), False, FIRST_PAUSE
        while left:
            try:
                refused = await self._conversations.keep([turn for turn, _, _ in left], again=again)
            except StoreUnavailable as error:
                left = _patient(left, error)
                again, pause = True, min(2 * pause, LONGEST_PAUSE)
                await asyncio.sleep(pause)
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                if len(left) > 1:
                    for one in left:
                        await self._keep([one])
                    return
                _end(left[0][1], error if isinstance(error, OpposableError) else StoreError(type(error).__name__))
                return
            else:
                for turn, kept, _ in left:
                    _end(kept, _anothers(turn) if turn.turn_id in refused else None)
                return


def _patient(
    waiting: Sequence[tuple[Turn, "asyncio.Future[None]", float]], error: StoreUnavailable
) -> list[tuple[Turn, "asyncio.Future[None]", float]]:
    """Those that may wait on; the others are told."""
    now = asyncio.get_running_loop().time()
    for _, kept, until in waiting:
        if until <= now:
            _end(kept, error)
    return [one for one in waiting if one[2] > now]


def _end(kept: "asyncio.Future[None]", error: OpposableError | None) -> None:
    if kept.done():  # nobody waits any more
        return
    if error is None:
        kept.set_result(None)
    else:
        kept.set_exception(error)


def _anothers(turn: Turn) -> BadInput:
    return BadInput(f"There is no conversation {turn.conversation.conversation_id!r}; begin one with another id.")
