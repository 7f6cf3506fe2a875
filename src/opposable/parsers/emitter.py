"""What a reader has told so far: text, thinking, calls and what was refused, with the parts not yet handed on."""

import json
from collections.abc import Callable
from typing import Any

import orjson

from opposable.domain.events import CallDelta, TextDelta, ThinkingDelta
from opposable.parsers.call_section import Found
from opposable.parsers.parse_result import Call, CallFinished, Part, Reading, Rejected, RejectionReason, TextWasThinking
from opposable.parsers.tool_names import Tools


class Output:
    """Collects what is read. `parts` are those not yet handed on; `blank` tells whether the line so far is empty."""

    __slots__ = (
        "_calls",
        "_ids",
        "_joint",
        "_new_id",
        "_raw",
        "_rejected",
        "_texts",
        "_thought_joint",
        "_thoughts",
        "_told",
        "_tools",
        "blank",
        "parts",
    )

    def __init__(self, tools: Tools, new_id: Callable[[], str]) -> None:
        self.parts: list[Part] = []
        self.blank = True
        self._tools = tools
        self._new_id = new_id
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Call] = []
        self._raw: list[str] = []
        self._rejected: list[Rejected] = []
        self._ids: set[str] = set()
        self._joint = self._thought_joint = False
        self._told = 0

    def plain(self, text: str) -> TextDelta:
        """Text in the middle of a line, with nothing in it to look at: the short way."""
        self._texts.append(text)
        return TextDelta(text)

    def say(self, text: str) -> None:
        """Text for the user."""
        if not self._texts or self._joint:
            text = text.lstrip()
            if text and self._texts and not self._texts[-1][-1].isspace():
                text = "\n" + text
        if not text:
            return
        self._joint = False
        line = text[text.rfind("\n") + 1 :]
        self.blank = not line.strip() and (self.blank or len(line) < len(text))
        self._texts.append(text)
        self.parts.append(TextDelta(text))

    def think(self, text: str) -> None:
        """A piece of the model's reasoning."""
        if not self._thoughts or self._thought_joint:
            text = text.lstrip()
            if text and self._thoughts and not self._thoughts[-1][-1].isspace():
                text = "\n" + text
        if not text:
            return
        self._thought_joint = False
        self._thoughts.append(text)
        self.parts.append(ThinkingDelta(text))

    def gap(self) -> None:
        """Something that is not shown stood here: what follows begins a line of its own."""
        self._joint = True
        self.blank = True

    def thought_ends(self) -> None:
        """A block of reasoning ended."""
        self._thought_joint = True
        self.gap()

    @property
    def silent(self) -> bool:
        """Whether nothing was told to the user yet."""
        return not self._texts

    def tail(self, size: int) -> str:
        """The last characters told to the user."""
        pieces: list[str] = []
        length = 0
        for piece in reversed(self._texts):
            pieces.append(piece)
            length += len(piece)
            if length >= size:
                break
        return "".join(reversed(pieces))[-size:]

    def thinking_tail(self, size: int) -> str:
        """The last characters of the reasoning."""
        return "".join(self._thoughts[-size:])[-size:]

    def lead(self) -> str:
        """What was said since the last gap that matters for a call: the text before it."""
        return "" if self._joint else self.tail(600)

    def text_was_thinking(self) -> None:
        """Everything told so far was reasoning."""
        if not self._texts and not self._calls:
            return
        self._thoughts.extend(self._texts)
        self._texts.clear()
        for call, raw in zip(self._calls, self._raw, strict=True):
            self._rejected.append(Rejected(raw, call.name, "in_thinking"))
        self._calls.clear()
        self._raw.clear()
        self.parts.append(TextWasThinking())

    def reject(self, text: str, name: str, reason: RejectionReason, detail: str = "") -> None:
        """Note what looked like a call and is none."""
        self._rejected.append(Rejected(text, name, reason, detail))

    def promote(self, found: Found, raw: str, truncated: bool, note: str = "") -> None:
        """Make a call of what was found, or say why it cannot be one."""
        if found.written is None:
            self.reject(raw, "", "unreadable", "It names no tool, or its JSON cannot be read.")
            return
        tool, repair = self._tools.find(found.written.name)
        if tool is None:
            self.reject(raw, found.written.name, "unknown_tool")
            return
        arguments = found.written.arguments(tool.schema, truncated)
        if arguments.value is None:
            self.reject(raw, tool.name, "truncated" if arguments.cut else "unreadable", arguments.problem or "")
            return
        repairs = tuple(mended for mended in (repair, note, *arguments.repairs) if mended)
        self._call(Call(self._own_id(found.id), tool.name, arguments.value, found.dialect, repairs), raw)

    def _own_id(self, given: str) -> str:
        own = given if given and given not in self._ids else self._new_id()
        self._ids.add(own)
        return own

    def _call(self, call: Call, raw: str) -> None:
        index = self._told
        self._told += 1
        self._calls.append(call)
        self._raw.append(raw)
        self.parts.append(CallDelta(index, call.id, call.name))
        self.parts.append(CallDelta(index, arguments=_json(call.arguments)))
        self.parts.append(CallFinished(index, call))

    def take(self) -> tuple[Part, ...]:
        """The parts not yet handed on."""
        parts = tuple(self.parts)
        self.parts.clear()
        return parts

    def reading(self) -> Reading:
        """All that was read."""
        return Reading(
            "".join(self._texts).strip(), "".join(self._thoughts).strip(), tuple(self._calls), tuple(self._rejected)
        )


def _json(arguments: dict[str, Any]) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except (TypeError, ValueError):  # a whole number beyond 64 bits, or half of a surrogate pair
        return json.dumps(arguments)
