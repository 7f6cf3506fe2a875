"""Gives values the types that a tool's JSON Schema asks for, and touches nothing else."""

import re
from typing import Any

from opposable.parsers.lenient_json import Repairs, UnreadableText, parse_lenient, parse_strict

_INTEGER = re.compile(r"[+-]?\d{1,300}")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_CHOICE_SEPARATOR = re.compile(r"[,，、;；]")
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_NULL_WORDS = frozenset({"null", "none", "nil"})
_JSON_TYPE_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_TYPE_ALIASES = {
    "int": "integer", "long": "integer", "float": "number", "double": "number", "decimal": "number", "bool": "boolean",
    "str": "string", "text": "string", "list": "array", "tuple": "array", "dict": "object", "map": "object", "none": "null",
}  # fmt: skip
"""Names of types that are not JSON Schema's, as tools written by hand have them."""
MAX_REFERENCE_DEPTH = 32


class SchemaNode:
    """One node of a JSON Schema, with the references of its root resolved."""

    __slots__ = ("node", "root")

    def __init__(self, node: Any, root: dict[str, Any] | None = None) -> None:
        self.root: dict[str, Any] = root if root is not None else (node if isinstance(node, dict) else {})
        self.node: dict[str, Any] = self._resolve_references(node)

    def _resolve_references(self, node: Any) -> dict[str, Any]:
        for _ in range(MAX_REFERENCE_DEPTH):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                break
            node = self._resolve_pointer(node["$ref"])
        return node if isinstance(node, dict) else {}

    def _resolve_pointer(self, reference: str) -> Any:
        found: Any = self.root
        if not reference.startswith("#"):
            return {}
        for part in reference[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found

    def properties(self) -> dict[str, Any]:
        """The properties named here and in `allOf`."""
        found = dict(_as_mapping(self.node.get("properties")))
        for part in _as_sequence(self.node.get("allOf")):
            found.update(SchemaNode(part, self.root).properties() if part is not self.node else {})
        return found

    def required_names(self) -> tuple[str, ...]:
        """The names of the properties that must be given."""
        return tuple(name for name in _as_sequence(self.node.get("required")) if isinstance(name, str))

    def get_property(self, name: str) -> "SchemaNode":
        """The schema of one property; an empty one where nothing is said of it."""
        properties = _as_mapping(self.node.get("properties"))
        if name not in properties and "allOf" in self.node:
            properties = self.properties()
        if name in properties:
            return SchemaNode(properties[name], self.root)
        return SchemaNode(self.node.get("additionalProperties"), self.root)

    def description(self) -> str:
        """What is said of it in words; "" where nothing is."""
        return str(self.node.get("description") or "")

    def get_item_schema(self, index: int) -> "SchemaNode":
        """The schema of an array's item."""
        first = _as_sequence(self.node.get("prefixItems"))
        return SchemaNode(first[index] if index < len(first) else self.node.get("items"), self.root)

    def alternatives(self) -> list["SchemaNode"]:
        """The alternatives of `anyOf` and `oneOf`, or this node alone."""
        found = [*_as_sequence(self.node.get("anyOf")), *_as_sequence(self.node.get("oneOf"))]
        return [SchemaNode(node, self.root) for node in found] or [self]

    def allowed_types(self, depth: int = 0) -> frozenset[str]:
        """The JSON types allowed here; empty where the schema does not say."""
        if depth > 8:
            return frozenset()
        found = set(_get_declared_types(self.node))
        branches = self.alternatives()
        if branches != [self]:
            found.update(kind for branch in branches for kind in branch.allowed_types(depth + 1))
        if not found:
            for part in _as_sequence(self.node.get("allOf")):
                found.update(SchemaNode(part, self.root).allowed_types(depth + 1))
        if found and self.node.get("nullable") is True:
            found.add("null")
        return frozenset(found)

    def get_alternative(self, type_name: str) -> "SchemaNode":
        """The alternative that allows `kind`."""
        for branch in self.alternatives():
            if type_name in branch.allowed_types(1) or (type_name == "integer" and "number" in branch.allowed_types(1)):
                return branch
        return self

    def choices(self) -> list[Any]:
        """The values of `enum`, with those of the alternatives."""
        found = list(_as_sequence(self.node.get("enum")))
        if "const" in self.node:
            found.append(self.node["const"])
        for branch in self.alternatives():
            if branch is not self:
                found.extend(_as_sequence(branch.node.get("enum")))
                found.extend([branch.node["const"]] if "const" in branch.node else [])
        return found


def _get_declared_types(node: dict[str, Any]) -> list[str]:
    kinds = node.get("type")
    if isinstance(kinds, str):
        return [_TYPE_ALIASES.get(kinds, kinds)]
    if isinstance(kinds, list):
        return [_TYPE_ALIASES.get(kind, kind) for kind in kinds if isinstance(kind, str)]
    values = [*_as_sequence(node.get("enum")), *([node["const"]] if "const" in node else [])]
    if values:
        return list({_JSON_TYPE_NAMES.get(type(value), "null") for value in values})
    if "properties" in node:
        return ["object"]
    return ["array"] if "items" in node or "prefixItems" in node else []


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def coerce_value(value: Any, schema: SchemaNode, repairs: Repairs) -> Any:
    """A value that came as JSON, with the type its schema asks for where that can be had without guessing."""
    kinds = schema.allowed_types()
    if isinstance(value, str):
        return _coerce_string(value, schema, kinds, repairs)
    if isinstance(value, dict):
        return _coerce_object(value, schema.get_alternative("object"), repairs)
    if isinstance(value, list):
        branch = schema.get_alternative("array")
        return [coerce_value(item, branch.get_item_schema(index), repairs) for index, item in enumerate(value)]
    if isinstance(value, bool) or value is None or not kinds:
        return value
    return _coerce_number(value, kinds, repairs)


def _coerce_object(value: dict[str, Any], schema: SchemaNode, repairs: Repairs) -> dict[str, Any]:
    return {key: _coerce_property(item, schema.get_property(key), repairs) for key, item in value.items()}


def _coerce_property(value: Any, schema: SchemaNode, repairs: Repairs) -> Any:
    if not isinstance(value, str):
        return coerce_value(value, schema, repairs)
    kinds = schema.allowed_types()
    return _coerce_choice_list(_coerce_string(value, schema, kinds, repairs), schema, kinds, repairs)


def _coerce_choice_list(value: Any, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    """A text that is choices, one behind the other, as the list that its schema wants; else the value."""
    if "array" not in types or "string" in types or not isinstance(value, str):
        return value
    made = _split_choices(value, schema.get_alternative("array"))
    if not made:
        return value
    repairs.add("choices given as one text")
    return made


def _coerce_number(value: float, types: frozenset[str], repairs: Repairs) -> Any:
    if isinstance(value, float) and "integer" in types and "number" not in types and value.is_integer():
        repairs.add("whole number written as a decimal")
        return int(value)
    if isinstance(value, int) and types <= {"string", "null"}:
        repairs.add("number given for text")
        return str(value)
    return value


def _coerce_string(value: str, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    choices = schema.choices()
    if choices and value not in choices:
        number = None if "string" in types else _parse_scalar(value.strip(), types)
        if number is None or number not in choices:
            return _coerce_choice(value, choices, types, repairs)
        repairs.add("value given as text")
        return number
    if not types or "string" in types:
        return value
    found = _parse_text(value, schema, types, Repairs())
    if found is not value:
        repairs.add("value given as text")
        if isinstance(found, dict | list):
            return coerce_value(found, schema, repairs)
    return found


def _split_choices(text: str, schema: SchemaNode) -> list[str]:
    """The choices that a text puts one behind the other, "a, b"; none where anything else stands there."""
    choices = [choice for choice in schema.get_item_schema(0).choices() if isinstance(choice, str)]
    folded = [choice.casefold() for choice in choices]
    made = []
    for part in _CHOICE_SEPARATOR.split(text) if choices else ():
        written = part.strip()
        if written not in choices and folded.count(written.casefold()) != 1:
            return []
        made.append(written if written in choices else choices[folded.index(written.casefold())])
    return made


def _coerce_choice(value: str, choices: list[Any], types: frozenset[str], repairs: Repairs) -> Any:
    folded = value.strip().casefold()
    same = [choice for choice in choices if isinstance(choice, str) and choice.casefold() == folded]
    if len(same) == 1:
        repairs.add("case of a choice")
        return same[0]
    written = [choice for choice in choices if not isinstance(choice, str) and str(choice).casefold() == folded]
    if len(written) == 1 and "string" not in types:
        repairs.add("value given as text")
        return written[0]
    return value


def coerce_text(text: str, schema: SchemaNode, repairs: Repairs) -> Any:
    """The value of an argument written as bare text, as tag forms carry it, typed by its schema.

    Where the schema allows text, text stays text unless it is exactly a value of another allowed type. Where the
    schema says nothing, only objects and arrays are decoded. What does not fit is handed back as it stands.
    """
    kinds = schema.allowed_types()
    return _coerce_choice_list(_parse_text(text, schema, kinds, repairs), schema, kinds, repairs)


def _parse_text(text: str, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    if types == {"string"}:
        return _coerce_string(text, schema, types, repairs)
    written = text.strip()
    if not types:
        return _parse_container(written, text, Repairs()) if written[:1] in ("{", "[") else text
    if "null" in types and written.casefold() in _NULL_WORDS:
        return None
    found = _parse_scalar(written, types)
    if found is not None:
        return found
    if types & {"object", "array"} and written[:1] in ("{", "["):
        mended = Repairs() if "string" in types else repairs
        value = _parse_container(written, text, mended)
        fits = ("object" if isinstance(value, dict) else "array") in types
        if value is not text and fits and not (mended.entries and "string" in types):
            return coerce_value(value, schema, repairs)
    if "string" in types:
        return _coerce_string(text, schema, types, repairs)
    return _coerce_choice(text, schema.choices(), types, repairs) if schema.choices() else text


def _parse_scalar(text: str, types: frozenset[str]) -> Any:
    """The number or truth value that `written` is, if one of `kinds`; None where it is none."""
    if types & {"integer", "number"}:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            value = float(text)
            if "number" in types:
                return value
            if value.is_integer():
                return int(value)
    if "boolean" in types:
        words = ("true", "false") if "string" in types or types & {"integer", "number"} else tuple(_BOOLEANS)
        if text.casefold() in words:
            return _BOOLEANS[text.casefold()]
    return None


def _parse_container(text: str, default: str, repairs: Repairs) -> Any:
    try:
        return parse_strict(text)
    except ValueError:
        pass
    mended = Repairs()
    try:
        value = _parse_escaped_json(text, mended) or parse_lenient(text, mended)
    except UnreadableText:
        return default
    if mended.is_unfinished or not isinstance(value, dict | list):
        return default
    for repair in mended:
        repairs.add(repair)
    return value


def _parse_escaped_json(text: str, repairs: Repairs) -> Any:
    """The value of JSON whose quotation marks are all escaped, as inside a string; None where it is not that."""
    if '\\"' not in text or _BARE_QUOTE.search(text):
        return None
    try:
        value = parse_strict(parse_strict(f'"{text}"'))
    except (ValueError, TypeError):
        return None
    repairs.add("escaped quotation marks")
    return value
