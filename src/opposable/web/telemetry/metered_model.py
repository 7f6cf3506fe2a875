"""A model wrapper that reports replies and failures to token budgets, metrics and traces."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from opposable.agent.request_size import estimate_prompt_tokens, lower_max_tokens
from opposable.domain.errors import ModelError, ModelRejected, get_error_kind
from opposable.domain.events import CallDelta, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ModelWrapper
from opposable.models.fallback import FallbackModel
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.telemetry.tracing import ModelCall

log = logging.getLogger("opposable.models")

BYTES_PER_TOKEN = 4
"""The estimate for replies that are cut, as for a prompt: a Chinese character has three bytes."""

OnModelCall = Callable[[ModelCall], None]
"""Called with each reply and each failure of a model."""


class MeteredModel(ModelWrapper):
    """A wrapper around a model that reports its replies and failures.

    Attributes:
        inner: The wrapped model.
        profile: The profile of the wrapped model.
    """

    def __init__(self, inner: Model, listeners: Sequence[OnModelCall]) -> None:
        super().__init__(inner)
        self._listeners = listeners

    def with_inner(self, inner: Model) -> "MeteredModel":
        """Return a wrapper with the same listeners around another model."""
        return MeteredModel(inner, self._listeners)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the reply of the wrapped model, with the same errors."""
        started_at_ns = time.time_ns()
        options = _limit_to_budget(messages, tools, options)
        received_bytes, has_reply = 0, False
        try:
            async with aclosing(self.inner.stream(messages, tools, options)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        has_reply = True
                        self.record_usage(part.usage, started_at_ns)
                    else:
                        received_bytes += _count_bytes(part)
                    yield part
        except BaseException as error:  # a client that leaves must not get its tokens for nothing
            if isinstance(error, ModelError):
                fields = {"model": self.name, "kind": type(error).__name__, "reason": str(error)[:300]}
                log.warning("model failed", extra=fields)
            is_cut = received_bytes or isinstance(error, GeneratorExit | asyncio.CancelledError)
            usage = NO_USAGE
            if is_cut:
                usage = Usage(estimate_prompt_tokens(messages, tools), math.ceil(received_bytes / BYTES_PER_TOKEN), 1)
            if not has_reply and (is_cut or isinstance(error, ModelError)):
                self.record_usage(usage, started_at_ns, error)
            raise

    def record_usage(self, usage: Usage, started_at_ns: int, error: BaseException | None = None) -> None:
        """Report a reply or failure that took these tokens, from this time until now."""
        CURRENT_CALLER.get().record_tokens(usage.total_tokens)
        ended_at_ns, failure = time.time_ns(), _get_failure(error)
        call = ModelCall(self.name, usage, started_at_ns, ended_at_ns, failure, self.profile.provider)
        for listener in self._listeners:
            listener(call)


def record_usage(model: Model, usage: Usage, started_at_ns: int, error: BaseException | None = None) -> None:
    """Report a reply or failure that did not pass through the model, if the model is metered."""
    if isinstance(model, MeteredModel):
        model.record_usage(usage, started_at_ns, error)


def is_model_failure(error: BaseException | None) -> bool:
    """Return whether an error is a failure of the model, and neither of the request nor a cancellation."""
    return bool(_get_failure(error))


def _get_failure(error: BaseException | None) -> str:
    """Return the kind of a model's error, also of one that another error was raised from, else ""."""
    for candidate in (error, getattr(error, "__cause__", None)):
        if isinstance(candidate, ModelError):
            return get_error_kind(candidate)
    return ""


def _count_bytes(part: TextDelta | ThinkingDelta | CallDelta) -> int:
    text = part.arguments if isinstance(part, CallDelta) else part.text
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _limit_to_budget(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
) -> ModelOptions:
    """Return the options with `max_tokens` lowered to what the token budget of the caller leaves.

    Raises:
        ModelRejected: The budget is used up.
    """
    remaining = CURRENT_CALLER.get().get_remaining_tokens()
    if remaining is None:
        return options
    if remaining <= 0:
        raise ModelRejected("This API key has used its budget of tokens. Ask its owner for another key.")
    return lower_max_tokens(options, remaining - estimate_prompt_tokens(messages, tools))


def wrap_models(models: Mapping[str, Model], listeners: Sequence[OnModelCall]) -> dict[str, Model]:
    """Wrap each model once, however many names it has."""
    wrapped: dict[int, Model] = {}

    def wrap(model: Model) -> Model:
        if id(model) not in wrapped:
            wrapped[id(model)] = (
                FallbackModel(model.name, [wrap(candidate) for candidate in model.candidates], model.kinds)
                if isinstance(model, FallbackModel)
                else MeteredModel(model, listeners)
            )
        return wrapped[id(model)]

    return {name: wrap(model) for name, model in models.items()}
