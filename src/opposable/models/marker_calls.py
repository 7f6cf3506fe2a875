"""A natively calling model of unknown behavior, whose text is searched for whole calls in a template's own markers."""

import re
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable import parsers  # lazy: the parser is loaded with the first marked call
from opposable.domain.errors import ModelError
from opposable.domain.events import CUT_OFF, ModelEvent, Reply, TextDelta
from opposable.domain.messages import Message, assistant_message, encode_messages
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions, ModelWrapper, request_reply
from opposable.parsers.markers import MISSING_END, OPENERS, TAGGED_CALL_STARTS, compile_alternatives, get_prefixes

_MARKERS = sorted({*OPENERS, *TAGGED_CALL_STARTS} - {"functools["})
_MARKER = compile_alternatives(_MARKERS)
_MARKER_PREFIXES = get_prefixes(_MARKERS)
_LONGEST_PREFIX = max(map(len, _MARKER_PREFIXES))
_MARKER_START = re.compile(f"[{re.escape(''.join(sorted({marker[0] for marker in _MARKERS})))}]")
_CODE_OR_QUOTATION = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?P<fence>`{3,}|~{3,}).*?(?:^[ \t>]*(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)"
    r"|<(?P<tag>pre|code)\b[^<>\n]*>.*?(?:</(?P=tag)>|\Z)|<!--.*?(?:-->|\Z)|<think>(?:(?!<think>).)*?</think>"
    rf"|(?<=\n)(?: {{4}}|\t)[ \t]*(?:{_MARKER.pattern})[^\n]*"
    r"|\"[^\"\n]*\"|“[^“”]*”|「[^「」]*」|『[^『』]*』|‘[^‘’\n]*’|^[ \t]*>[^\n]*"
    rf"|(?:['„‚]|[«‹]\s?)(?:{_MARKER.pattern})",
    re.MULTILINE | re.DOTALL,
)
"""Code (fences, spans, indented lines, HTML), quotations, reasoning, and a marker after an opening quotation mark."""
_UNMARKED_FORMATS = frozenset(
    {"json", "json_list", "name_as_key", "pythonic", "tool_code", "react", "react_json", "seed", "openai", "text"}
)
"""Formats without markers: such a text may be an answer."""


class MarkerCallsModel(ModelWrapper):
    """`inner` with calls in markers parsed from its text, in replies without native calls.

    Text passes unchanged, unless it holds a whole call outside code and quotation. From a marker on, text is held back
    until the reply is complete or fails. A local server gets results with their control tokens escaped.
    """

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply. Raises: what the inner model raises."""
        is_searched = bool(tools) and options.tool_choice != "none"
        held = ""
        is_holding = False
        sent = escape_results(messages) if self.profile.local else messages
        try:
            async with aclosing(self.inner.stream(sent, tools, options)) as parts:
                async for part in parts:
                    if type(part) is TextDelta and is_searched and not part.is_refusal:
                        if not held and not _MARKER_START.search(part.text):
                            yield part
                            continue
                        held += part.text
                        if not is_holding:
                            shown, held, is_holding = split_at_marker(held)
                            if shown:
                                yield TextDelta(shown)
                    elif type(part) is Reply:
                        reply = add_marked_calls(part, tools) if is_searched else part
                        shown = part.message.content.removesuffix(held)
                        if rest := held if reply is part else reply.message.content[len(shown) :]:
                            yield TextDelta(rest)
                        yield reply
                    else:
                        yield part
        except ModelError:
            if held:
                yield TextDelta(held)
            raise

    async def fetch_whole_reply(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> Reply:
        """Return one reply that is not streamed. Raises: what the inner model raises."""
        sent = escape_results(messages) if self.profile.local else messages
        reply = await request_reply(self.inner, sent, tools, options)
        return add_marked_calls(reply, tools) if tools and options.tool_choice != "none" else reply


def escape_results(messages: Sequence[Message]) -> Sequence[Message]:
    """Escape the control tokens in tool results, for a server that renders them into a text prompt."""
    contents = encode_messages(messages, "escaped", _encode_escaped_result)
    if not any(contents):
        return messages
    pairs = zip(messages, contents, strict=True)
    return [replace(one, content=text.decode("utf-8", "surrogatepass")) if text else one for one, text in pairs]


def _encode_escaped_result(message: Message) -> bytes:
    """Return the content of a tool result with its control tokens escaped; empty if there are none."""
    escaped = parsers.escape_special_tokens(message.content) if message.role == "tool" else message.content
    return b"" if escaped is message.content else escaped.encode("utf-8", "surrogatepass")


def split_at_marker(text: str) -> tuple[str, str, bool]:
    """Return what may be shown, what must be held back, and whether a marker was found."""
    if found := _MARKER.search(text):
        return text[: found.start()], text[found.start() :], True
    for start in range(max(0, len(text) - _LONGEST_PREFIX), len(text)):
        if text[start:] in _MARKER_PREFIXES:
            return text[:start], text[start:], False
    return text, "", False


def add_marked_calls(reply: Reply, tools: Sequence[ToolDefinition]) -> Reply:
    """Return the reply with the calls in its text; the same reply where there are none, or native calls."""
    text = reply.message.content
    if reply.message.tool_calls or not _MARKER.search(text):
        return reply
    visible = _CODE_OR_QUOTATION.sub(lambda found: " " * len(found[0]), text)
    if (marker := _MARKER.search(visible)) is None:
        return reply
    from opposable.parsers import quotation  # lazy: its patterns are compiled with the first marked call

    lead = text[: marker.start()].rstrip()
    parsed = parsers.parse(text[marker.start() :], tuple(tools), truncated=reply.finish in CUT_OFF)
    calls = (*parsed.calls, *create_invalid_calls(parsed, {"unknown_tool"}))
    is_shown = quotation.is_shown(lead) or (not parsed.calls and quotation.is_introduced(lead))
    is_whole = all(call.dialect not in _UNMARKED_FORMATS and MISSING_END not in call.repairs for call in parsed.calls)
    if is_shown or not is_whole or not calls or parsed.text.strip():  # a call ends the reply
        return reply
    finish = "tool_calls" if reply.finish == "stop" else reply.finish
    return replace(reply, message=assistant_message(lead, calls, reply.message.thinking), finish=finish)


def create_invalid_calls(parsed: "parsers.ParseResult", reasons: Collection[str]) -> list[ToolCall]:
    """Return calls for the texts that were rejected for one of these reasons, so that the loop reports the problem."""
    return [
        ToolCall.from_json(
            new_call_id(), one.name or "unknown", one.text, dialect="text", truncated=one.reason == "truncated"
        )
        for one in parsed.rejected
        if one.reason in reasons
    ]
