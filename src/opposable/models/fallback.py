"""A model with replacements for when it fails."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Literal

from opposable.domain.errors import BadInput, ContextFull, ModelError, ModelNotFound, ModelRefusedKey, ModelUnavailable
from opposable.domain.events import ModelEvent
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.profile import ModelProfile, adapt_media, get_profile

FallbackKind = Literal["unavailable", "rate_limited", "refused_key", "not_found", "context_full"]
"""A kind of failure after which another model is asked. A rejected request or an answer never is one."""

DEFAULT_FALLBACK_KINDS: tuple[FallbackKind, ...] = ("unavailable", "rate_limited", "refused_key", "not_found")

_KINDS: Mapping[type[Exception], FallbackKind] = {
    ModelUnavailable: "unavailable",
    ModelRefusedKey: "refused_key",
    ModelNotFound: "not_found",
    ContextFull: "context_full",
    ModelError: "unavailable",  # such as a response that is not a reply
}
"""The kind of each error but that of a rate limit, which has status 429."""


class FallbackModel:
    """The first of several models that does not fail.

    A model that has begun its reply is never replaced.

    Args:
        name: The name of all of them.
        candidates: The models, in order; the caller closes them.
        kinds: The failures after which the next model is asked.
    """

    def __init__(
        self, name: str, candidates: Sequence[Model], kinds: Collection[FallbackKind] = DEFAULT_FALLBACK_KINDS
    ) -> None:
        self.name = name
        self.candidates = tuple(candidates)
        self.kinds = frozenset(kinds)

    @property
    def profile(self) -> ModelProfile:
        """The profile of the first model."""
        return get_profile(self.candidates[0])

    def allows_fallback(self, error: Exception) -> bool:
        """Return whether the next model is asked after this error; always if the model does not take the images."""
        kind = "rate_limited" if getattr(error, "status", None) == 429 else _KINDS.get(type(error))
        return isinstance(error, BadInput) or kind in self.kinds

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the reply of the first model that does not fail. Raises: as the last one."""
        for candidate in self.candidates:
            is_started = False
            try:
                async with aclosing(candidate.stream(adapt_media(candidate, messages), tools, options)) as events:
                    async for event in events:
                        is_started = True
                        yield event
            except (ModelError, BadInput) as error:
                if is_started or candidate is self.candidates[-1] or not self.allows_fallback(error):
                    raise
            else:
                return

    async def aclose(self) -> None:
        """Close the models."""
        for candidate in self.candidates:
            await candidate.aclose()
