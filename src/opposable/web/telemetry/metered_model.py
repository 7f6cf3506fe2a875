"""A model wrapper that reports replies to token budgets, metrics and traces."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from opposable.domain.events import ModelEvent, Reply
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.profile import get_profile
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.telemetry.tracing import ModelCall

OnModelCall = Callable[[ModelCall], None]
"""Called with each reply of a model."""


class MeteredModel:
    """A wrapper around a model that reports its replies.

    Attributes:
        inner: The wrapped model.
        profile: The profile of the wrapped model.
    """

    def __init__(self, inner: Model, listeners: Sequence[OnModelCall]) -> None:
        self.inner = inner
        self.profile = get_profile(inner)
        self._listeners = listeners

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self.inner.name

    def with_inner(self, inner: Model) -> "MeteredModel":
        """Return a wrapper with the same listeners around another model."""
        return MeteredModel(inner, self._listeners)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the reply of the wrapped model, with the same errors."""
        started_at_ns = time.time_ns()
        async with aclosing(self.inner.stream(messages, tools, options)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    self.record_usage(part.usage, started_at_ns)
                yield part

    def record_usage(self, usage: Usage, started_at_ns: int) -> None:
        """Report a reply that took these tokens, from this time until now."""
        CURRENT_CALLER.get().record_tokens(usage.total_tokens)
        call = ModelCall(self.name, usage, started_at_ns, time.time_ns())
        for listener in self._listeners:
            listener(call)

    async def aclose(self) -> None:
        """Close the wrapped model."""
        await self.inner.aclose()


def record_usage(model: Model, usage: Usage, started_at_ns: int) -> None:
    """Report a reply that did not pass through the model, if the model is metered."""
    if isinstance(model, MeteredModel):
        model.record_usage(usage, started_at_ns)


def wrap_models(models: Mapping[str, Model], listeners: Sequence[OnModelCall]) -> dict[str, Model]:
    """Wrap each model once, however many names it has."""
    wrapped = {id(model): MeteredModel(model, listeners) for model in models.values()}
    return {name: wrapped[id(model)] for name, model in models.items()}
