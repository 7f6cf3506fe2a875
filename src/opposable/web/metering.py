"""Models whose tokens are counted: against the key that asked, and for whoever watches."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from opposable.domain.events import ModelPart, Reply
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.web.access import CALLER

OnUsage = Callable[[str, Usage], None]
"""Told a model's name and what one reply of it used."""


class MeteredModel:
    """A model in front of `model`, whose replies are counted."""

    def __init__(self, model: Model, on_usage: OnUsage) -> None:
        self._model = model
        self._on_usage = on_usage

    @property
    def name(self) -> str:
        """The model's own."""
        return self._model.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """The model's reply. Raises: as the model."""
        async with aclosing(self._model.stream(messages, tools, options)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    CALLER.get().spend(part.usage.total_tokens)
                    self._on_usage(self.name, part.usage)
                yield part

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


def metered(models: Mapping[str, Model], on_usage: OnUsage) -> dict[str, Model]:
    """The models, each counted; a model of several names stays one model."""
    made = {id(model): MeteredModel(model, on_usage) for model in models.values()}
    return {name: made[id(model)] for name, model in models.items()}
