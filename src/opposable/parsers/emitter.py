"""The emitter: collects text, reasoning, calls and the events to return."""

from collections.abc import Callable

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta
from opposable.domain.tools import ToolCall
from opposable.parsers.call_section import CallSpan
from opposable.parsers.parse_result import (
    CallFinished,
    ParseResult,
    ParserEvent,
    RejectedCall,
    RejectionReason,
    TextWasThinking,
)
from opposable.parsers.tool_names import ToolIndex

HEAD_DELTAS = 16
"""Deltas of the text that hold its first word."""


class Emitter:
    """Collects the result.

    Attributes:
        events: The events not yet returned by `take_events`.
        is_line_blank: Whether the current line has only white space so far.
    """

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
        self._calls: list[ToolCall] = []
        self._raw_calls: list[str] = []
        self._rejected: list[RejectedCall] = []
        self._used_ids: set[str] = set()
        self._is_after_gap = self._is_thinking_after_gap = False
        self._call_count = 0

    def emit_plain_text(self, text: str) -> TextDelta:
        """Emit text from the middle of a line without special characters (fast path)."""
        self._text_deltas.append(text)
        return TextDelta(text)

    def emit_text(self, text: str) -> None:
        """Emit text for the user."""
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
        """Emit a delta of the model's reasoning."""
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
        """Note that something was left out here; the next text starts on a new line."""
        self._is_after_gap = True
        self.is_line_blank = True

    def end_thinking(self) -> None:
        """End a block of reasoning."""
        self._is_thinking_after_gap = True
        self.mark_gap()

    @property
    def has_no_text(self) -> bool:
        """Whether no text has been emitted yet."""
        return not self._text_deltas

    @property
    def is_empty(self) -> bool:
        """Whether neither a text nor a call has been found yet."""
        return not self._text_deltas and not self.has_calls

    @property
    def has_calls(self) -> bool:
        """Whether a call has been emitted or rejected."""
        return self._call_count > 0 or bool(self._rejected)

    def get_text_head(self) -> str:
        """Return the beginning of the emitted text, at least a word of it."""
        return "".join(self._text_deltas[:HEAD_DELTAS])

    def get_text_tail(self, size: int) -> str:
        """Return the last characters of the emitted text."""
        deltas: list[str] = []
        length = 0
        for delta in reversed(self._text_deltas):
            deltas.append(delta)
            length += len(delta)
            if length >= size:
                break
        return "".join(reversed(deltas))[-size:]

    def get_thinking_tail(self, size: int) -> str:
        """Return the last characters of the reasoning."""
        return "".join(self._thinking_deltas[-size:])[-size:]

    def get_preceding_text(self) -> str:
        """Return the text before a call, since the last gap, at most 600 characters."""
        return "" if self._is_after_gap else self.get_text_tail(600)

    def reclassify_text_as_thinking(self) -> None:
        """Turn everything emitted so far into reasoning."""
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
        """Record text that looked like a call but is not one."""
        self._rejected.append(RejectedCall(text, name, reason, detail))

    def emit_call(self, span: CallSpan, raw: str, truncated: bool, repair_note: str = "") -> None:
        """Emit a call, or reject it if its tool or arguments are invalid."""
        if span.call is None:
            self.reject_call(raw, "", "unreadable", "It names no tool, or its JSON cannot be read.")
            return
        tool, name_repair = self._tools.find(span.call.name)
        if tool is None:
            self.reject_call(raw, span.call.name, "unknown_tool")
            return
        arguments = span.call.parse_arguments(tool.schema, truncated)
        if arguments.value is None:
            self.reject_call(
                raw, tool.name, "truncated" if arguments.is_cut_off else "unreadable", arguments.problem or ""
            )
            return
        repairs = tuple(repair for repair in (name_repair, repair_note, *arguments.repairs) if repair)
        call_id = self._claim_id(span.id)
        self._append_call(ToolCall(call_id, tool.name, arguments.value, dialect=span.parser, repairs=repairs), raw)

    def _claim_id(self, call_id: str) -> str:
        """Return the model's id for a call, or a new one if it is missing or used."""
        unique_id = call_id if call_id and call_id not in self._used_ids else self._new_id()
        self._used_ids.add(unique_id)
        return unique_id

    def _append_call(self, call: ToolCall, raw: str) -> None:
        """Store a call and emit its events."""
        index = self._call_count
        self._call_count += 1
        self._calls.append(call)
        self._raw_calls.append(raw)
        self.events.append(CallDelta(index, call.id, call.name))
        self.events.append(CallDelta(index, arguments=call.arguments_json))
        self.events.append(CallFinished(index, call))

    def take_events(self) -> tuple[ParserEvent, ...]:
        """Return the events that have not been returned yet."""
        parts = tuple(self.events)
        self.events.clear()
        return parts

    def build_result(self) -> ParseResult:
        """Return everything parsed so far."""
        return ParseResult(
            "".join(self._text_deltas).strip(),
            "".join(self._thinking_deltas).strip(),
            tuple(self._calls),
            tuple(self._rejected),
        )
