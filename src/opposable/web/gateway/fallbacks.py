"""Requests to a model with fallbacks: each is relayed or translated in the way of the model that answers."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from opposable.domain.errors import ModelError
from opposable.models.base import Model
from opposable.models.fallback import FallbackModel
from opposable.models.upstream import ClientRequest

Fetch = Callable[[Model, ClientRequest], Awaitable[bytes]]
Stream = Callable[[Model, ClientRequest], AsyncGenerator[bytes, None]]


async def fetch_first(model: Model, client: ClientRequest, fetch: Fetch) -> bytes:
    """Return the answer of the model, or of the first fallback that does not fail.

    Raises: as the last one.
    """

    async def yield_answer(candidate: Model, client: ClientRequest) -> AsyncGenerator[bytes, None]:
        yield await fetch(candidate, client)

    async with aclosing(stream_first(model, client, yield_answer)) as answers:
        return await anext(answers)


async def stream_first(model: Model, client: ClientRequest, stream: Stream) -> AsyncGenerator[bytes, None]:
    """Yield the events of the model, or of the first fallback that does not fail before its first event.

    Raises: as the last one.
    """
    candidates = model.candidates if isinstance(model, FallbackModel) else (model,)
    for candidate in candidates:
        is_started = False
        try:
            async with aclosing(stream(candidate, client)) as events:
                async for event in events:
                    is_started = True
                    yield event
        except ModelError as error:
            is_last = is_started or candidate is candidates[-1]
            if is_last or not isinstance(model, FallbackModel) or not model.allows_fallback(error):
                raise
            client.response_headers.clear()
        else:
            return
