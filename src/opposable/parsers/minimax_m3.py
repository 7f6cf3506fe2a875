"""MiniMax M3: every tag is prefixed, the parameter's name is the tag, objects and arrays are nested tags."""

import re
from dataclasses import dataclass
from typing import Any

from opposable.parsers.arguments import ParsedArguments
from opposable.parsers.lenient_json import MAX_DEPTH, Repairs
from opposable.parsers.schema_coercion import SchemaNode, coerce_text

TAG_PREFIX = "]<]minimax[>["
_CALL = re.compile(re.escape(TAG_PREFIX) + r'<invoke name="(?P<name>[^"\n]{1,200})"[^>\n]{0,200}>')
_CALL_END = TAG_PREFIX + "</invoke>"
_TAG = re.compile(re.escape(TAG_PREFIX) + r"<(?P<close>/?)(?P<name>[^<>/\s]{1,200})>")


@dataclass(slots=True)
class TagElement:
    """A tag: where its content begins and ends, and the tags in it."""

    name: str
    start: int
    end: int
    children: list["TagElement"]


@dataclass(slots=True)
class MiniMaxM3Scan:
    """Scans the body of one call, from after its opening tag at `at` to after its end."""

    name: str
    at: int
    start: int = -1
    text: str = ""
    is_complete: bool = False

    def scan(self, text: str, final: bool) -> int | None:
        """The position after the call, or None while more text is needed."""
        if self.start < 0:
            self.start = self.at
        end = text.find(_CALL_END, self.at)
        if end >= 0:
            self.text, self.is_complete = text[self.start : end], True
            return end + len(_CALL_END)
        self.at = max(self.at, len(text) - len(_CALL_END) + 1)
        if not final:
            return None
        self.text = text[self.start :]
        return len(text)

    def parse_arguments(self, schema: SchemaNode, truncated: bool) -> ParsedArguments:
        """The arguments, typed by the tool's schema."""
        if not self.is_complete:
            return ParsedArguments(None, "The call ends in the middle.", is_cut_off=True)
        repairs = Repairs()
        values = {
            item.name: _coerce_element(self.text, item, schema.get_property(item.name), repairs)
            for item in _parse_elements(self.text)
        }
        return ParsedArguments(values, None, tuple(repairs))


def match_opening_tag(text: str, at: int) -> MiniMaxM3Scan | None:
    """The scan of the call whose opening tag stands at `at`."""
    found = _CALL.match(text, at)
    return MiniMaxM3Scan(found["name"], found.end()) if found else None


def _parse_elements(text: str) -> list[TagElement]:
    """The outermost tags of `text`, each with its children; a closing tag without its opening one is passed over."""
    root = TagElement("", 0, len(text), [])
    open_elements = [root]
    for tag in _TAG.finditer(text):
        if not tag["close"]:
            element = TagElement(tag["name"], tag.end(), len(text), [])
            open_elements[-1].children.append(element)
            if len(open_elements) < MAX_DEPTH:
                open_elements.append(element)
        elif len(open_elements) > 1 and open_elements[-1].name == tag["name"]:
            open_elements.pop().end = tag.start()
    return root.children


def _coerce_element(text: str, element: TagElement, schema: SchemaNode, repairs: Repairs) -> Any:
    written = text[element.start : element.end]
    kinds = schema.allowed_types()
    if not element.children or "string" in kinds:
        return coerce_text(written, schema, repairs)
    if "array" in kinds or (not kinds and all(child.name == "item" for child in element.children)):
        fields = {child.name for child in element.children}
        if fields == {"item"}:
            array = schema.get_alternative("array")
            return [
                _coerce_element(text, child, array.get_item_schema(i), repairs)
                for i, child in enumerate(element.children)
            ]
    branch = schema.get_alternative("object")
    values: dict[str, list[Any]] = {}
    for child in element.children:
        values.setdefault(child.name, []).append(_coerce_element(text, child, branch.get_property(child.name), repairs))
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}
