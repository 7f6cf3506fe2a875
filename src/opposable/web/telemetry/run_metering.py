"""Counts the tokens of runs outside of HTTP requests, for the API keys that own the runs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from opposable.service.service import Service
from opposable.web.middleware.authentication import CURRENT_CALLER, Caller
from opposable.web.middleware.request_limits import TokenUsageRecorder
from opposable.web.principal import Principal
from opposable.web.telemetry.metered_model import wrap_models
from opposable.web.telemetry.usage_recorder import UsageRecorder


@asynccontextmanager
async def meter_runs(service: Service) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """Replace the models of a service by wrappers that count their tokens, and write the counts while the block runs.

    Yields:
        A function that sets the id of the API key whose run begins in the current task. It raises `StoreUnavailable`.
    """
    token_usage = TokenUsageRecorder(service.store.keys)
    usage_recorder = UsageRecorder(service.store.model_usage)
    service.models = wrap_models(service.models, [usage_recorder.record])

    async def set_owner(key_id: str) -> None:
        key, tokens_used = await token_usage.load_key(lambda: service.store.keys.get(key_id)) if key_id else (None, 0)
        principal = Principal(key_id, token_budget=None if key is None else key.token_budget)
        CURRENT_CALLER.set(Caller(principal, token_usage, tokens_used))

    async with token_usage.write_periodically(), usage_recorder.write_periodically():
        yield set_owner
