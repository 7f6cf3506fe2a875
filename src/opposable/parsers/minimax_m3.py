"""The MiniMax M3 format: prefixed tags, nested for objects and arrays."""

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
    """A tag: where its content begins and ends, and the tags inside it."""

    name: str
    start: int
    end: int
    children: list["TagElement"]


@dataclass(slots=True)
class MiniMaxM3Scan:
    """The scan of the body of one call, from after its opening tag to after its end."""

    name: str
    start: int
    at: int
    text: str = ""
    is_complete: bool = False

    def scan(self, text: str, final: bool) -> int | None:
        """Return the position after the call, or None if more text is needed."""
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
        """Parse the arguments and coerce them to the tool's schema."""
        if not self.is_complete:
            return ParsedArguments(None, "the call ends in the middle", is_cut_off=True)
        repairs = Repairs()
        values = {
            item.name: _coerce_element(self.text, item, schema.get_property(item.name), repairs)
            for item in _parse_elements(self.text)
        }
        return ParsedArguments(values, None, tuple(repairs))


def match_opening_tag(text: str, at: int) -> MiniMaxM3Scan | None:
    """Return a scan of the call whose opening tag is at `at`, or None."""
    match = _CALL.match(text, at)
    return MiniMaxM3Scan(match["name"], match.end(), match.end()) if match else None


def _parse_elements(text: str) -> list[TagElement]:
    """Return the outermost tags of `text`, with their children.

    A closing tag without an opening one is ignored.
    """
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
    """Coerce the content of a tag to its schema."""
    content = text[element.start : element.end]
    types = schema.allowed_types()
    if not element.children and not content.strip() and len(types) == 1 and types <= {"array", "object"}:
        return [] if "array" in types else {}
    if not element.children or "string" in types:
        return coerce_text(content, schema, repairs)
    if "array" in types or (not types and all(child.name == "item" for child in element.children)):
        fields = {child.name for child in element.children}
        if fields == {"item"}:
            array_schema = schema.get_alternative("array")
            return [
                _coerce_element(text, child, array_schema.get_item_schema(i), repairs)
                for i, child in enumerate(element.children)
            ]
    object_schema = schema.get_alternative("object")
    values: dict[str, list[Any]] = {}
    for child in element.children:
        values.setdefault(child.name, []).append(
            _coerce_element(text, child, object_schema.get_property(child.name), repairs)
        )
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}
