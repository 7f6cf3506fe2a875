"""MiniMax M3: every tag is prefixed, the parameter's name is the tag, objects and arrays are nested tags."""

import re
from dataclasses import dataclass
from typing import Any

from opposable.parsers.arguments import Arguments
from opposable.parsers.lenient_json import MAX_DEPTH, Repairs
from opposable.parsers.schema_coercion import Schema, from_text

PREFIX = "]<]minimax[>["
_CALL = re.compile(re.escape(PREFIX) + r'<invoke name="(?P<name>[^"\n]{1,200})"[^>\n]{0,200}>')
_END = PREFIX + "</invoke>"
_TAG = re.compile(re.escape(PREFIX) + r"<(?P<close>/?)(?P<name>[^<>/\s]{1,200})>")


@dataclass(slots=True)
class Element:
    """A tag: where its content begins and ends, and the tags in it."""

    name: str
    start: int
    end: int
    children: list["Element"]


@dataclass(slots=True)
class M3Scan:
    """Scans the body of one call, from after its opening tag at `at` to after its end."""

    name: str
    at: int
    start: int = -1
    text: str = ""
    complete: bool = False

    def scan(self, text: str, final: bool) -> int | None:
        """The position after the call, or None while more text is needed."""
        if self.start < 0:
            self.start = self.at
        end = text.find(_END, self.at)
        if end >= 0:
            self.text, self.complete = text[self.start : end], True
            return end + len(_END)
        self.at = max(self.at, len(text) - len(_END) + 1)
        if not final:
            return None
        self.text = text[self.start :]
        return len(text)

    def arguments(self, schema: Schema, truncated: bool) -> Arguments:
        """The arguments, typed by the tool's schema."""
        if not self.complete:
            return Arguments(None, "The call ends in the middle.", cut=True)
        repairs = Repairs()
        values = {
            item.name: _value(self.text, item, schema.property(item.name), repairs) for item in _elements(self.text)
        }
        return Arguments(values, None, tuple(repairs))


def call_at(text: str, at: int) -> M3Scan | None:
    """The scan of the call whose opening tag stands at `at`."""
    found = _CALL.match(text, at)
    return M3Scan(found["name"], found.end()) if found else None


def _elements(text: str) -> list[Element]:
    """The outermost tags of `text`, each with its children; a closing tag without its opening one is passed over."""
    root = Element("", 0, len(text), [])
    open_elements = [root]
    for tag in _TAG.finditer(text):
        if not tag["close"]:
            element = Element(tag["name"], tag.end(), len(text), [])
            open_elements[-1].children.append(element)
            if len(open_elements) < MAX_DEPTH:
                open_elements.append(element)
        elif len(open_elements) > 1 and open_elements[-1].name == tag["name"]:
            open_elements.pop().end = tag.start()
    return root.children


def _value(text: str, element: Element, schema: Schema, repairs: Repairs) -> Any:
    written = text[element.start : element.end]
    kinds = schema.kinds()
    if not element.children or "string" in kinds:
        return from_text(written, schema, repairs)
    if "array" in kinds or (not kinds and all(child.name == "item" for child in element.children)):
        fields = {child.name for child in element.children}
        if fields == {"item"}:
            array = schema.branch("array")
            return [_value(text, child, array.items(i), repairs) for i, child in enumerate(element.children)]
    branch = schema.branch("object")
    values: dict[str, list[Any]] = {}
    for child in element.children:
        values.setdefault(child.name, []).append(_value(text, child, branch.property(child.name), repairs))
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}
