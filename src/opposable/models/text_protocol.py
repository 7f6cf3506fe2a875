"""Tool calls through plain text: a model around a model that may know nothing of tools.

Three seams: the tools are told (in the prompt or natively), the calls are read from what the model writes, and the
results are told back (as text or natively). Which way suits a model is found by measuring.
"""

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

import orjson

from opposable import parsers as dialects
from opposable.domain.events import CallDelta, FinishReason, ModelPart, Reply, TextDelta, ThinkingDelta
from opposable.domain.language import Language, language_of
from opposable.domain.messages import Message, assistant, system, user
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import text_protocol_prompts as protocol_texts
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, Named, ToolChoice
from opposable.parsers import Reading, Rejected

Telling = Literal["native", "protocol"]
"""How tools and results are told: in the wire format's own fields, or written into the messages (the seed protocol)."""

SHOWN = frozenset({TextDelta, ThinkingDelta, CallDelta})
"""What is passed on of the parts a reader gives."""


class TextProtocolModel:
    """`inner` with tool calls read from its text.

    `telling="native"` sends tools in the wire format (a server's chat template shows them to the model) and reads what
    the model writes; calls the server parsed itself are taken as they are. `telling="protocol"` writes the tools and the
    seed protocol into the system message and the results back as text: nothing is asked of `inner` but text. A call of
    an unknown tool, or one cut off by the token limit, comes out as a call too, so that the loop can tell the model.
    """

    def __init__(
        self, inner: Model, telling: Telling = "native", *, constrained: bool = False, trusting: bool = True
    ) -> None:
        self.inner = inner
        self.telling = telling
        self.constrained = constrained
        self.trusting = trusting

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.inner.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """One reply in parts, free of markup. Raises: what the inner model raises."""
        if self.telling != "native":
            told_so = told(messages, tools, options.tool_choice)
            parts = self.inner.stream(told_so, (), constrained(tools, options, self.constrained))
        else:
            parts = self.inner.stream(messages, tools, options)
        reader = dialects.Reader(() if options.tool_choice == "none" else tools)
        reply: Reply | None = None
        async with aclosing(parts):
            async for part in parts:
                if type(part) is TextDelta:
                    for piece in reader.feed(part.text):
                        if type(piece) in SHOWN:
                            yield piece  # type: ignore[misc]  # the parts shown are events too
                elif type(part) is Reply:
                    reply = part
                else:
                    yield part
        if reply is None:
            return
        if not options.stream:
            reader.feed(reply.message.content)
        reading = reader.close(truncated=reply.finish == "length")
        for piece in reader.rest if options.stream else ():
            if type(piece) in SHOWN:
                yield piece  # type: ignore[misc]  # as above
        yield understood(reply, reading, self.trusting)

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()


def told(messages: Sequence[Message], tools: Sequence[ToolDefinition], choice: ToolChoice) -> list[Message]:
    """The messages as a model that knows only text is told them."""
    language: Language = next((language_of(message.content) for message in messages if message.role == "user"), "en")
    plain = as_text(
        messages, lambda results: protocol_texts.results_as_text(results, language), protocol_texts.calls_as_text
    )
    if not tools or choice == "none":
        return plain
    protocol = protocol_texts.instructions(tools, choice, language)
    if plain and plain[0].role == "system":
        return [system(f"{plain[0].content}\n\n{protocol}"), *plain[1:]]
    return [system(protocol), *plain]


def as_text(
    messages: Sequence[Message],
    results_as_text: Callable[[Sequence[Message]], str],
    calls_as_text: Callable[[Sequence[ToolCall]], str],
) -> list[Message]:
    """The messages without calls and results of their own: what came of one reply's calls is one user message."""
    plain: list[Message] = []
    for is_result, group in itertools.groupby(messages, lambda message: message.role == "tool"):
        if is_result:
            plain.append(user(results_as_text(list(group))))
            continue
        for message in group:
            written = calls_as_text(message.tool_calls) if message.tool_calls else ""
            plain.append(assistant("\n".join(filter(None, (message.content, written)))) if written else message)
    return plain


def constrained(tools: Sequence[ToolDefinition], options: ModelOptions, always: bool) -> ModelOptions:
    """The options with a schema of the protocol's reply, for servers that enforce one.

    A forced choice is made certain by it; `always` makes every reply one of the protocol's two.
    """
    choice = options.tool_choice
    if not tools or choice == "none" or (choice == "auto" and not always):
        return options
    meant = [tool for tool in tools if not isinstance(choice, Named) or tool.name == choice.name]
    each = [_object(name={"const": tool.name}, arguments=tool.parameters) for tool in meant]
    calls = {"type": "array", "items": each[0] if len(each) == 1 else {"anyOf": each}, "minItems": 1, "maxItems": 8}
    call = _object(action={"const": "tool_call"}, tool_calls=calls)
    finish = _object(action={"const": "finish"}, content={"type": "string"})
    return replace(options, response_schema=call if choice != "auto" else {"anyOf": [call, finish]})


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def understood(reply: Reply, reading: Reading, trusting: bool = True) -> Reply:
    """The reply with the calls that were read from its text; trusted, calls the server parsed itself go first and alone."""
    said = reply.message
    shown = "" if reading.text.strip() == protocol_texts.PLACEHOLDER else reading.text
    thinking = said.thinking or reading.thinking
    if said.tool_calls and trusting:
        return Reply(assistant(shown, said.tool_calls, thinking), reply.finish, reply.usage)
    calls = tuple(
        ToolCall(call.id, call.name, orjson.dumps(call.arguments).decode(), call.dialect, call.repairs)
        for call in reading.calls
    )
    calls += tuple(_unmade(item, n) for n, item in enumerate(reading.rejected) if item.reason in _TOLD)
    finish: FinishReason = "tool_calls" if calls and reply.finish == "stop" else reply.finish
    return Reply(assistant(shown, calls, thinking), finish, reply.usage)


_TOLD = {"unknown_tool", "truncated", "unreadable"}


def _unmade(item: Rejected, place: int) -> ToolCall:
    """What was meant as a call and cannot be made, as a call that the loop answers with what is wrong."""
    return ToolCall(f"unmade_{place}", item.name or "unknown", item.text, "text", truncated=item.reason == "truncated")
