"""What a reader has told so far: text, thinking, calls and what was refused, with the parts not yet handed on."""

import json
from collections.abc import Callable
from typing import Any

import orjson

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta
from opposable.parsers.call_section import CallSpan
from opposable.parsers.parse_result import (
    CallFinished,
    ParsedCall,
    ParseResult,
    ParserEvent,
    RejectedCall,
    RejectionReason,
    TextWasThinking,
)
from opposable.parsers.tool_names import ToolIndex


class Emitter:
    """Collects what is read. `parts` are those not yet handed on; `blank` tells whether the line so far is empty."""

    __slots__ = (
        "_call_count",
        "_calls",
        "_is_after_gap",
        "_is_thinking_after_gap",
        "_new_id",
        "_raw_calls",
        "_rejected",
        "_text_deltas",
        "_thinking_deltas",
        "_tools",
        "_used_ids",
        "events",
        "is_line_blank",
    )

    def __init__(self, tools: ToolIndex, new_id: Callable[[], str]) -> None:
        self.events: list[ParserEvent] = []
        self.is_line_blank = True
        self._tools = tools
        self._new_id = new_id
        self._text_deltas: list[str] = []
        self._thinking_deltas: list[str] = []
        self._calls: list[ParsedCall] = []
        self._raw_calls: list[str] = []
        self._rejected: list[RejectedCall] = []
        self._used_ids: set[str] = set()
        self._is_after_gap = self._is_thinking_after_gap = False
        self._call_count = 0

    def emit_plain_text(self, text: str) -> TextDelta:
        """Text in the middle of a line, with nothing in it to look at: the short way."""
        self._text_deltas.append(text)
        return TextDelta(text)

    def emit_text(self, text: str) -> None:
        """Text for the user."""
        if not self._text_deltas or self._is_after_gap:
            text = text.lstrip()
            if text and self._text_deltas and not self._text_deltas[-1][-1].isspace():
                text = "\n" + text
        if not text:
            return
        self._is_after_gap = False
        line = text[text.rfind("\n") + 1 :]
        self.is_line_blank = not line.strip() and (self.is_line_blank or len(line) < len(text))
        self._text_deltas.append(text)
        self.events.append(TextDelta(text))

    def emit_thinking(self, text: str) -> None:
        """A piece of the model's reasoning."""
        if not self._thinking_deltas or self._is_thinking_after_gap:
            text = text.lstrip()
            if text and self._thinking_deltas and not self._thinking_deltas[-1][-1].isspace():
                text = "\n" + text
        if not text:
            return
        self._is_thinking_after_gap = False
        self._thinking_deltas.append(text)
        self.events.append(ThinkingDelta(text))

    def mark_gap(self) -> None:
        """Something that is not shown stood here: what follows begins a line of its own."""
        self._is_after_gap = True
        self.is_line_blank = True

    def end_thinking(self) -> None:
        """A block of reasoning ended."""
        self._is_thinking_after_gap = True
        self.mark_gap()

    @property
    def has_no_text(self) -> bool:
        """Whether nothing was told to the user yet."""
        return not self._text_deltas

    def get_text_tail(self, size: int) -> str:
        """The last characters told to the user."""
        pieces: list[str] = []
        length = 0
        for piece in reversed(self._text_deltas):
            pieces.append(piece)
            length += len(piece)
            if length >= size:
                break
        return "".join(reversed(pieces))[-size:]

    def get_thinking_tail(self, size: int) -> str:
        """The last characters of the reasoning."""
        return "".join(self._thinking_deltas[-size:])[-size:]

    def get_preceding_text(self) -> str:
        """What was said since the last gap that matters for a call: the text before it."""
        return "" if self._is_after_gap else self.get_text_tail(600)

    def reclassify_text_as_thinking(self) -> None:
        """Everything told so far was reasoning."""
        if not self._text_deltas and not self._calls:
            return
        self._thinking_deltas.extend(self._text_deltas)
        self._text_deltas.clear()
        for call, raw in zip(self._calls, self._raw_calls, strict=True):
            self._rejected.append(RejectedCall(raw, call.name, "in_thinking"))
        self._calls.clear()
        self._raw_calls.clear()
        self.events.append(TextWasThinking())

    def reject_call(self, text: str, name: str, reason: RejectionReason, detail: str = "") -> None:
        """Note what looked like a call and is none."""
        self._rejected.append(RejectedCall(text, name, reason, detail))

    def emit_call(self, span: CallSpan, raw: str, truncated: bool, repair_note: str = "") -> None:
        """Make a call of what was found, or say why it cannot be one."""
        if span.call is None:
            self.reject_call(raw, "", "unreadable", "It names no tool, or its JSON cannot be read.")
            return
        tool, repair = self._tools.find(span.call.name)
        if tool is None:
            self.reject_call(raw, span.call.name, "unknown_tool")
            return
        arguments = span.call.parse_arguments(tool.schema, truncated)
        if arguments.value is None:
            self.reject_call(
                raw, tool.name, "truncated" if arguments.is_cut_off else "unreadable", arguments.problem or ""
            )
            return
        repairs = tuple(mended for mended in (repair, repair_note, *arguments.repairs) if mended)
        self._append_call(ParsedCall(self._claim_id(span.id), tool.name, arguments.value, span.parser, repairs), raw)

    def _claim_id(self, call_id: str) -> str:
        own = call_id if call_id and call_id not in self._used_ids else self._new_id()
        self._used_ids.add(own)
        return own

    def _append_call(self, call: ParsedCall, raw: str) -> None:
        index = self._call_count
        self._call_count += 1
        self._calls.append(call)
        self._raw_calls.append(raw)
        self.events.append(CallDelta(index, call.id, call.name))
        self.events.append(CallDelta(index, arguments=_dump_arguments(call.arguments)))
        self.events.append(CallFinished(index, call))

    def take_events(self) -> tuple[ParserEvent, ...]:
        """The parts not yet handed on."""
        parts = tuple(self.events)
        self.events.clear()
        return parts

    def build_result(self) -> ParseResult:
        """All that was read."""
        return ParseResult(
            "".join(self._text_deltas).strip(),
            "".join(self._thinking_deltas).strip(),
            tuple(self._calls),
            tuple(self._rejected),
        )


def _dump_arguments(arguments: dict[str, Any]) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except (TypeError, ValueError):  # a whole number beyond 64 bits, or half of a surrogate pair
        return json.dumps(arguments)
