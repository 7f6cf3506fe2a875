"""Records the tokens of each API key and model, and writes them in the background."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from opposable.domain.records import get_utc_now
from opposable.domain.usage import NO_USAGE, Usage
from opposable.store.model_usage import ModelUsage, ModelUsageRepository
from opposable.web.background_writes import write_periodically
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.telemetry.tracing import ModelCall

WRITE_SECONDS = 2.0
"""Seconds between writes."""


class UsageRecorder:
    """Adds up the tokens of model calls until they are written."""

    def __init__(self, repository: ModelUsageRepository) -> None:
        self._repository = repository
        self._pending: dict[tuple[str, str], Usage] = {}
        self._lock = asyncio.Lock()

    def record(self, call: ModelCall) -> None:
        """Add a model call of the current caller; one that failed before its first token does not count."""
        if call.failure and not call.usage.total_tokens:
            return
        key = (CURRENT_CALLER.get().principal.key_id, call.model)
        self._pending[key] = self._pending.get(key, NO_USAGE) + replace(call.usage, requests=1)

    async def write(self) -> None:
        """Write what was recorded; a write in progress ends first.

        Raises:
            StoreError: If the store fails; the tokens are written later.
        """
        async with self._lock:
            pending, self._pending = self._pending, {}
            records = [ModelUsage(key_id, model, usage) for (key_id, model), usage in pending.items()]
            try:
                await self._repository.add(records, get_utc_now().date())
            except BaseException:
                for key, usage in pending.items():
                    self._pending[key] = self._pending.get(key, NO_USAGE) + usage
                raise

    def write_periodically(self) -> AbstractAsyncContextManager[None]:
        """Write while the block runs, and once at its end."""
        return write_periodically(self.write, WRITE_SECONDS, "the use of models")
