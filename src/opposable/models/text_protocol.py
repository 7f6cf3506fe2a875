"""The text protocol: tool calls for a model through plain text.

A wrapper sends the tools and results in the prompt or natively, and parses the calls in the text of the reply.
"""

import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from opposable import parsers  # lazy: the stream parser is loaded with the first request
from opposable.domain.content import TextPart
from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply, TextDelta, ThinkingDelta
from opposable.domain.language import Language, detect_language
from opposable.domain.messages import Message, add_instructions, assistant_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import text_protocol_prompts as protocol_texts
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, Model, ModelOptions, ModelWrapper, ToolChoice
from opposable.models.marker_calls import create_invalid_calls, escape_results
from opposable.models.profile import ModelProfile
from opposable.parsers import ParseResult

ToolRendering = Literal["native", "protocol"]
"""How tools and results are sent: in the fields of the API, or as text of the messages."""

TEXT_PROFILE = ModelProfile("text")


class TextProtocolModel(ModelWrapper):
    """A model whose tool calls are parsed from its text.

    A call of an unknown tool, or one cut off by the token limit, becomes a tool call too, so that the loop can report
    the problem to the model.

    Args:
        inner: The model. For "protocol" it needs to support nothing but text.
        tool_rendering: "native" sends tools in the fields of the API, where the chat template of the server renders
            them. "protocol" describes the tools in the system message and sends results as text.
        constrained: Whether every reply must match the schema of the protocol, where the server can enforce it.
        trust_native_calls: Whether calls that the server parsed are used as they are.
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
        super().__init__(inner, profile)
        self.tool_rendering = tool_rendering
        self.constrained = constrained
        self.trust_native_calls = trust_native_calls

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts, without the markup of calls.

        Raises: as the inner model.
        """
        if self.tool_rendering != "native":
            rendered_messages = render_messages(messages, tools, options.tool_choice)
            parts = self.inner.stream(rendered_messages, (), with_reply_schema(tools, options, self.constrained))
        else:
            parts = self.inner.stream(escape_results(messages), tools, options)
        parser = parsers.StreamParser(tools)
        allows_calls = options.tool_choice != "none"
        forwarded = _ForwardedEvents(allows_calls)
        async with aclosing(parts):
            async for part in parts:
                if type(part) is TextDelta:
                    for event in forwarded.select(parser.feed(part.text)):
                        yield event
                elif type(part) is Reply:
                    if not options.stream:
                        parser.feed(part.message.content)
                    parse_result = parser.close(truncated=part.finish in CUT_OFF)
                    for event in forwarded.select(parser.final_events if options.stream else (), is_end=True):
                        yield event
                    reply = merge_parsed_calls(part, parse_result, self.trust_native_calls)
                    message = reply.message if allows_calls else replace(reply.message, tool_calls=())
                    yield replace(reply, message=message, finish=reply.finish if allows_calls else part.finish)
                else:
                    yield part


class _ForwardedEvents:
    """Selects the events to yield, and holds the beginning of a text while it may be a placeholder."""

    def __init__(self, allows_calls: bool) -> None:
        self._types = (TextDelta, ThinkingDelta, CallDelta) if allows_calls else (TextDelta, ThinkingDelta)
        self._text = ""
        self._has_begun = False

    def select(self, events: Iterable[Any], *, is_end: bool = False) -> Iterator[ModelEvent]:
        """Yield the events of the parser that are passed on; at the end the held text too, if it is no placeholder."""
        for event in events:
            if type(event) is TextDelta and not self._has_begun:
                self._text += event.text
                beginning = self._text.strip()
                self._has_begun = not any(one.startswith(beginning) for one in protocol_texts.PLACEHOLDERS)
                if self._has_begun:
                    yield TextDelta(self._text)
            elif type(event) in self._types:
                yield event
        if is_end and not self._has_begun and self._text and self._text.strip() not in protocol_texts.PLACEHOLDERS:
            yield TextDelta(self._text)


def render_messages(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], tool_choice: ToolChoice
) -> list[Message]:
    """Render the messages as text, with the tools described in the system message."""
    language = find_language(messages)
    text_messages = flatten_tool_messages(messages, language, protocol_texts.render_calls)
    if not tools or tool_choice == "none":
        return text_messages
    return add_instructions(text_messages, protocol_texts.render_instructions(tools, tool_choice, language))


def find_language(messages: Sequence[Message]) -> Language:
    """Return the language of the first message of the user."""
    return next((detect_language(message.content) for message in messages if message.role == "user"), "en")


def flatten_tool_messages(
    messages: Sequence[Message], language: Language, render_calls: Callable[[Sequence[ToolCall]], str]
) -> list[Message]:
    """Return the messages with calls and results as text.

    The results of one reply become one user message, with headings in this language.
    """
    text_messages: list[Message] = []
    for is_result, group in itertools.groupby(escape_results(messages), lambda message: message.role == "tool"):
        if is_result:
            results = list(group)
            text = protocol_texts.render_results(results, language)
            media = tuple(part for result in results for part in result.media)
            text_messages.append(user_message(text, (TextPart(text), *media) if media else ()))
            continue
        for message in group:
            calls_text = render_calls(message.tool_calls) if message.tool_calls else ""
            text_messages.append(
                assistant_message("\n".join(filter(None, (message.content, calls_text)))) if calls_text else message
            )
    return text_messages


def with_reply_schema(
    tools: Sequence[ToolDefinition], options: ModelOptions, is_always_constrained: bool
) -> ModelOptions:
    """Return the options with a schema for the reply, for servers that enforce one.

    A forced tool choice always gets the schema; other requests only with `is_always_constrained`.
    """
    choice = options.tool_choice
    if not tools or choice == "none" or (choice == "auto" and not is_always_constrained):
        return options
    allowed_tools = [tool for tool in tools if not isinstance(choice, ForcedTool) or tool.name == choice.name]
    path = "#/anyOf/0/properties/tool_calls/items" if choice == "auto" else "#/properties/tool_calls/items"
    paths = [path] if len(allowed_tools) == 1 else [f"{path}/anyOf/{index}" for index in range(len(allowed_tools))]
    call_schemas = [
        _build_object_schema(
            name={"const": tool.name}, arguments=_move_references(tool.parameters, f"{path}/properties/arguments")
        )
        for tool, path in zip(allowed_tools, paths, strict=True)
    ]
    calls = {
        "type": "array",
        "items": call_schemas[0] if len(call_schemas) == 1 else {"anyOf": call_schemas},
        "minItems": 1,
        "maxItems": 8,
    }
    call = _build_object_schema(action={"const": "tool_call"}, tool_calls=calls)
    finish = _build_object_schema(action={"const": "finish"}, content={"type": "string"})
    return replace(options, response_schema=call if choice != "auto" else {"anyOf": [call, finish]})


def _move_references(schema: Any, path: str) -> Any:
    """Return a schema whose local references begin at its path in the schema that contains it."""
    if isinstance(schema, list):
        return [_move_references(item, path) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: path + value[1:] if key == "$ref" and str(value).startswith("#") else _move_references(value, path)
        for key, value in schema.items()
    }


def _build_object_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def merge_parsed_calls(reply: Reply, parse_result: ParseResult, trust_native_calls: bool = True) -> Reply:
    """Return the reply with the calls parsed from its text. Trusted native calls take their place."""
    message = reply.message
    text = "" if parse_result.text.strip() in protocol_texts.PLACEHOLDERS else parse_result.text
    thinking = message.thinking or parse_result.thinking
    if message.tool_calls and trust_native_calls:
        return Reply(assistant_message(text, message.tool_calls, thinking), reply.finish, reply.usage)
    calls = (*parse_result.calls, *create_invalid_calls(parse_result, _REPORTED_REASONS))
    finish: FinishReason = "tool_calls" if calls and reply.finish == "stop" else reply.finish
    return Reply(assistant_message(text, calls, thinking), finish, reply.usage)


_REPORTED_REASONS = {"unknown_tool", "truncated", "unreadable"}
"""Rejected text becomes a call for these reasons, so that the loop reports the problem."""
