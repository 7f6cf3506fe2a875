"""Models whose tokens are counted: against the key that asked, and for whoever watches."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from opposable.domain.events import ModelEvent, Reply
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.telemetry.tracing import ModelCall

OnModelCall = Callable[[ModelCall], None]
"""Told of each reply of a model."""


class MeteredModel:
    """A model in front of `model`, whose replies are counted."""

    def __init__(self, model: Model, listeners: Sequence[OnModelCall]) -> None:
        self._model = model
        self._listeners = listeners

    @property
    def name(self) -> str:
        """The model's own."""
        return self._model.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """The model's reply. Raises: as the model."""
        begun = time.time_ns()
        async with aclosing(self._model.stream(messages, tools, options)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    CURRENT_CALLER.get().record_tokens(part.usage.total_tokens)
                    call = ModelCall(self.name, part.usage, begun, time.time_ns())
                    for hear in self._listeners:
                        hear(call)
                yield part

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


def wrap_models(models: Mapping[str, Model], listeners: Sequence[OnModelCall]) -> dict[str, Model]:
    """The models, each counted; a model of several names stays one model."""
    made = {id(model): MeteredModel(model, listeners) for model in models.values()}
    return {name: made[id(model)] for name, model in models.items()}
