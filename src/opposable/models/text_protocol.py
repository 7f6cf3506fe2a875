"""Tool calls through plain text: a model around a model that may know nothing of tools.

Three seams: the tools are told (in the prompt or natively), the calls are read from what the model writes, and the
results are told back (as text or natively). Which way suits a model is found by measuring.
"""

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from opposable import parsers as dialects
from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.language import Language, detect_language
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import text_protocol_prompts as protocol_texts
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, Model, ModelOptions, ToolChoice
from opposable.models.marker_calls import escape_results
from opposable.models.profile import ModelProfile
from opposable.parsers import ParseResult, RejectedCall

ToolRendering = Literal["native", "protocol"]
"""How tools and results are told: in the wire format's own fields, or written into the messages (the seed protocol)."""

FORWARDED_PARTS = frozenset({TextDelta, ThinkingDelta, CallDelta})
"""What is passed on of the parts a reader gives."""


TEXT_PROFILE = ModelProfile("text")


class TextProtocolModel:
    """`inner` with tool calls read from its text.

    `telling="native"` sends tools in the wire format (a server's chat template shows them to the model) and reads what
    the model writes; calls the server parsed itself are taken as they are. `telling="protocol"` writes the tools and the
    seed protocol into the system message and the results back as text: nothing is asked of `inner` but text. A call of
    an unknown tool, or one cut off by the token limit, comes out as a call too, so that the loop can tell the model.
    """

    def __init__(
        self,
        inner: Model,
        tool_rendering: ToolRendering = "native",
        *,
        constrained: bool = False,
        trust_native_calls: bool = True,
        profile: ModelProfile = TEXT_PROFILE,
    ) -> None:
        self.inner = inner
        self.profile = profile
        self.tool_rendering = tool_rendering
        self.constrained = constrained
        self.trust_native_calls = trust_native_calls

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.inner.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """One reply in parts, free of markup. Raises: what the inner model raises."""
        if self.tool_rendering != "native":
            told_so = render_messages(messages, tools, options.tool_choice)
            parts = self.inner.stream(told_so, (), with_reply_schema(tools, options, self.constrained))
        else:
            parts = self.inner.stream(escape_results(messages), tools, options)
        reader = dialects.StreamParser(() if options.tool_choice == "none" else tools)
        reply: Reply | None = None
        async with aclosing(parts):
            async for part in parts:
                if type(part) is TextDelta:
                    for piece in reader.feed(part.text):
                        if type(piece) in FORWARDED_PARTS:
                            yield piece  # type: ignore[misc]  # the parts shown are events too
                elif type(part) is Reply:
                    reply = part
                else:
                    yield part
        if reply is None:
            return
        if not options.stream:
            reader.feed(reply.message.content)
        reading = reader.close(truncated=reply.finish in CUT_OFF)
        for piece in reader.final_events if options.stream else ():
            if type(piece) in FORWARDED_PARTS:
                yield piece  # type: ignore[misc]  # as above
        yield merge_parsed_calls(reply, reading, self.trust_native_calls)

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()


def render_messages(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], tool_choice: ToolChoice
) -> list[Message]:
    """The messages as a model that knows only text is told them."""
    language: Language = next(
        (detect_language(message.content) for message in messages if message.role == "user"), "en"
    )
    plain = flatten_tool_messages(
        escape_results(messages),
        lambda results: protocol_texts.render_results(results, language),
        protocol_texts.render_calls,
    )
    if not tools or tool_choice == "none":
        return plain
    protocol = protocol_texts.render_instructions(tools, tool_choice, language)
    if plain and plain[0].role == "system":
        return [system_message(f"{plain[0].content}\n\n{protocol}"), *plain[1:]]
    return [system_message(protocol), *plain]


def flatten_tool_messages(
    messages: Sequence[Message],
    render_results: Callable[[Sequence[Message]], str],
    render_calls: Callable[[Sequence[ToolCall]], str],
) -> list[Message]:
    """The messages without calls and results of their own: what came of one reply's calls is one user message."""
    plain: list[Message] = []
    for is_result, group in itertools.groupby(messages, lambda message: message.role == "tool"):
        if is_result:
            plain.append(user_message(render_results(list(group))))
            continue
        for message in group:
            written = render_calls(message.tool_calls) if message.tool_calls else ""
            plain.append(assistant_message("\n".join(filter(None, (message.content, written)))) if written else message)
    return plain


def with_reply_schema(
    tools: Sequence[ToolDefinition], options: ModelOptions, is_always_constrained: bool
) -> ModelOptions:
    """The options with a schema of the protocol's reply, for servers that enforce one.

    A forced choice is made certain by it; `always` makes every reply one of the protocol's two.
    """
    choice = options.tool_choice
    if not tools or choice == "none" or (choice == "auto" and not is_always_constrained):
        return options
    meant = [tool for tool in tools if not isinstance(choice, ForcedTool) or tool.name == choice.name]
    each = [_build_object_schema(name={"const": tool.name}, arguments=tool.parameters) for tool in meant]
    calls = {"type": "array", "items": each[0] if len(each) == 1 else {"anyOf": each}, "minItems": 1, "maxItems": 8}
    call = _build_object_schema(action={"const": "tool_call"}, tool_calls=calls)
    finish = _build_object_schema(action={"const": "finish"}, content={"type": "string"})
    return replace(options, response_schema=call if choice != "auto" else {"anyOf": [call, finish]})


def _build_object_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def merge_parsed_calls(reply: Reply, parse_result: ParseResult, trust_native_calls: bool = True) -> Reply:
    """The reply with the calls that were read from its text; trusted, calls the server parsed itself go first and alone."""
    said = reply.message
    shown = "" if parse_result.text.strip() == protocol_texts.PLACEHOLDER else parse_result.text
    thinking = said.thinking or parse_result.thinking
    if said.tool_calls and trust_native_calls:
        return Reply(assistant_message(shown, said.tool_calls, thinking), reply.finish, reply.usage)
    calls = tuple(
        ToolCall(call.id, call.name, call.arguments, dialect=call.parser, repairs=call.repairs)
        for call in parse_result.calls
    )
    calls += tuple(
        _to_invalid_call(item, n) for n, item in enumerate(parse_result.rejected) if item.reason in _REPORTED_REASONS
    )
    finish: FinishReason = "tool_calls" if calls and reply.finish == "stop" else reply.finish
    return Reply(assistant_message(shown, calls, thinking), finish, reply.usage)


_REPORTED_REASONS = {"unknown_tool", "truncated", "unreadable"}


def _to_invalid_call(rejected: RejectedCall, index: int) -> ToolCall:
    """Return text that looks like a call and is not one as a call, so that the loop reports the problem."""
    return ToolCall.from_json(
        f"unmade_{index}",
        rejected.name or "unknown",
        rejected.text,
        dialect="text",
        truncated=rejected.reason == "truncated",
    )
