"""The model protocol: messages and tools in, a stream of parts out."""

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from opposable.domain.errors import ModelError
from opposable.domain.events import ModelEvent, Reply
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.models.profile import ModelProfile, get_profile


@dataclass(frozen=True, slots=True)
class ForcedTool:
    """The choice of one tool by its name: the model must call it."""

    name: str


ToolChoice = Literal["none", "auto", "required"] | ForcedTool


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of one request to a model.

    Attributes:
        stream: Whether to receive the reply as it is generated. A whole reply costs less.
        tool_choice: Whether the model may or must call a tool.
        max_tokens: The length of the reply.
        temperature: The sampling temperature.
        stop: Texts that end the reply.
        seed: The seed of the sampling.
        top_logprobs: How many alternatives with log-probabilities to return for each token of a whole reply, if the
            server supports it.
        response_schema: A JSON Schema for the reply, if the server can enforce one.
        extra_body: Further fields of the request. Servers of the chat-completions API get all of them. Other models
            have an attribute `extra_parameters` with the names that they support.

    A model that cannot honor some of the options has an attribute `unsupported_options` with their names.
    """

    stream: bool = True
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    top_logprobs: int | None = None
    response_schema: dict[str, Any] | None = field(default=None, hash=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, hash=False)


DEFAULT_OPTIONS = ModelOptions()


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The name of the model, for people and records."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts; the last part is a `Reply`.

        Closing the iterator cancels the request.

        Raises:
            ModelError: The model does not answer, or rejects the request.
        """
        ...

    async def aclose(self) -> None:
        """Release connections, threads and memory. A second call does nothing."""
        ...


class ModelWrapper:
    """A model that asks another one, `inner`, whose name and, by default, profile it has."""

    def __init__(self, inner: Model, profile: ModelProfile | None = None) -> None:
        self.inner = inner
        self.profile = profile or get_profile(inner)

    @property
    def name(self) -> str:
        """The name of the inner model."""
        return self.inner.name

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()


def adapt_options(model: Any, options: ModelOptions) -> ModelOptions:
    """Return options for a short reply, without what a reasoning model rejects or spends on its reasoning."""
    if not get_profile(model).reasoning:
        return options
    return replace(options, max_tokens=None, temperature=None, top_logprobs=None)


def find_whole_reply_method(model: Model) -> Callable[..., Awaitable[Reply]] | None:
    """Return the `fetch_whole_reply` of a model that does what its `stream` does for a reply that is not streamed.

    It saves models of this library a generator. A subclass or an object that replaces `stream` is asked by `stream`.
    """
    if "stream" in getattr(model, "__dict__", ()) or not _defines_both_methods(type(model)):
        return None
    return getattr(model, "fetch_whole_reply", None)


@functools.cache
def _defines_both_methods(model_type: type) -> bool:
    owner = next((kind for kind in model_type.__mro__ if "stream" in vars(kind)), None)
    return owner is not None and "fetch_whole_reply" in vars(owner)


async def request_reply(
    model: Model,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition] = (),
    options: ModelOptions = DEFAULT_OPTIONS,
) -> Reply:
    """Request a reply and return it when it is complete.

    Raises:
        ModelError: The request failed, or the stream ended without a reply.
    """
    if not options.stream and (fetch := find_whole_reply_method(model)):
        return await fetch(messages, tools, options)
    async with aclosing(model.stream(messages, tools, options)) as parts:
        async for part in parts:
            if type(part) is Reply:
                return part
    raise ModelError(f"The stream of model {model.name!r} ended without a reply.")
