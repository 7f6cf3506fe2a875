"""Signs of life of this process, and the end of runs whose process has died."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from opposable.domain.errors import OpposableError
from opposable.store.workers import Workers

BEAT = 2.0
"""Seconds between signs of life."""
SILENCE = 10.0
"""Seconds without one after which a process counts as dead."""

log = logging.getLogger("opposable.service")


class Living:
    """Keeps this process known as alive: `async with Living(...) as living`; its name is `living.worker`.

    Runs of dead processes are ended by whichever process sees it first. One that could not reach the store itself for
    a while judges nobody: the others may have been cut off like it.
    """

    def __init__(self, workers: Workers, *, beat: float = BEAT, silence: float = SILENCE) -> None:
        self.worker = uuid4().hex
        self._workers = workers
        self._beat = beat
        self._silence = silence
        self._owner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Living":
        await self._workers.seen(self.worker)
        self._owner = asyncio.create_task(self._work(), name="signs of life")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._owner is not None
        self._owner.cancel()
        with suppress(asyncio.CancelledError):
            await self._owner
        with suppress(OpposableError):
            await self._workers.gone(self.worker)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        last = since = loop.time()
        while True:
            await asyncio.sleep(self._beat)
            if loop.time() - last > self._silence / 2:  # it was cut off, or this process stood still
                since = loop.time()
            try:
                await self._workers.seen(self.worker)
                last = loop.time()
                ended: Sequence[str] = ()
                if last - since > self._silence:
                    ended = await self._workers.end_lost(timedelta(seconds=self._silence))
                if ended:
                    log.warning("Runs whose process died were ended: %s", ", ".join(ended))
            except OpposableError as error:
                log.debug("No sign of life could be given: %s", error)
