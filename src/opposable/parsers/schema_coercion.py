"""Gives values the types that a tool's JSON Schema asks for, and touches nothing else."""

import re
from typing import Any

from opposable.parsers.lenient_json import Repairs, Unreadable, lenient, strict

_INTEGER = re.compile(r"[+-]?\d{1,300}")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_COMMA = re.compile(r"[,，、;；]")
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_NOTHING = frozenset({"null", "none", "nil"})
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_PLAIN_NAMES = {
    "int": "integer", "long": "integer", "float": "number", "double": "number", "decimal": "number", "bool": "boolean",
    "str": "string", "text": "string", "list": "array", "tuple": "array", "dict": "object", "map": "object", "none": "null",
}  # fmt: skip
"""Names of types that are not JSON Schema's, as tools written by hand have them."""
MAX_REFERENCES = 32


class Schema:
    """One node of a JSON Schema, with the references of its root resolved."""

    __slots__ = ("node", "root")

    def __init__(self, node: Any, root: dict[str, Any] | None = None) -> None:
        self.root: dict[str, Any] = root if root is not None else (node if isinstance(node, dict) else {})
        self.node: dict[str, Any] = self._resolve(node)

    def _resolve(self, node: Any) -> dict[str, Any]:
        for _ in range(MAX_REFERENCES):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                break
            node = self._target(node["$ref"])
        return node if isinstance(node, dict) else {}

    def _target(self, reference: str) -> Any:
        found: Any = self.root
        if not reference.startswith("#"):
            return {}
        for part in reference[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found

    def properties(self) -> dict[str, Any]:
        """The properties named here and in `allOf`."""
        found = dict(_mapping(self.node.get("properties")))
        for part in _sequence(self.node.get("allOf")):
            found.update(Schema(part, self.root).properties() if part is not self.node else {})
        return found

    def required(self) -> tuple[str, ...]:
        """The names of the properties that must be given."""
        return tuple(name for name in _sequence(self.node.get("required")) if isinstance(name, str))

    def property(self, name: str) -> "Schema":
        """The schema of one property; an empty one where nothing is said of it."""
        properties = _mapping(self.node.get("properties"))
        if name not in properties and "allOf" in self.node:
            properties = self.properties()
        if name in properties:
            return Schema(properties[name], self.root)
        return Schema(self.node.get("additionalProperties"), self.root)

    def description(self) -> str:
        """What is said of it in words; "" where nothing is."""
        return str(self.node.get("description") or "")

    def items(self, index: int) -> "Schema":
        """The schema of an array's item."""
        first = _sequence(self.node.get("prefixItems"))
        return Schema(first[index] if index < len(first) else self.node.get("items"), self.root)

    def branches(self) -> list["Schema"]:
        """The alternatives of `anyOf` and `oneOf`, or this node alone."""
        found = [*_sequence(self.node.get("anyOf")), *_sequence(self.node.get("oneOf"))]
        return [Schema(node, self.root) for node in found] or [self]

    def kinds(self, depth: int = 0) -> frozenset[str]:
        """The JSON types allowed here; empty where the schema does not say."""
        if depth > 8:
            return frozenset()
        found = set(_declared(self.node))
        branches = self.branches()
        if branches != [self]:
            found.update(kind for branch in branches for kind in branch.kinds(depth + 1))
        if not found:
            for part in _sequence(self.node.get("allOf")):
                found.update(Schema(part, self.root).kinds(depth + 1))
        if found and self.node.get("nullable") is True:
            found.add("null")
        return frozenset(found)

    def branch(self, kind: str) -> "Schema":
        """The alternative that allows `kind`."""
        for branch in self.branches():
            if kind in branch.kinds(1) or (kind == "integer" and "number" in branch.kinds(1)):
                return branch
        return self

    def choices(self) -> list[Any]:
        """The values of `enum`, with those of the alternatives."""
        found = list(_sequence(self.node.get("enum")))
        if "const" in self.node:
            found.append(self.node["const"])
        for branch in self.branches():
            if branch is not self:
                found.extend(_sequence(branch.node.get("enum")))
                found.extend([branch.node["const"]] if "const" in branch.node else [])
        return found


def _declared(node: dict[str, Any]) -> list[str]:
    kinds = node.get("type")
    if isinstance(kinds, str):
        return [_PLAIN_NAMES.get(kinds, kinds)]
    if isinstance(kinds, list):
        return [_PLAIN_NAMES.get(kind, kind) for kind in kinds if isinstance(kind, str)]
    values = [*_sequence(node.get("enum")), *([node["const"]] if "const" in node else [])]
    if values:
        return list({_KINDS.get(type(value), "null") for value in values})
    if "properties" in node:
        return ["object"]
    return ["array"] if "items" in node or "prefixItems" in node else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def typed(value: Any, schema: Schema, repairs: Repairs) -> Any:
    """A value that came as JSON, with the type its schema asks for where that can be had without guessing."""
    kinds = schema.kinds()
    if isinstance(value, str):
        return _typed_string(value, schema, kinds, repairs)
    if isinstance(value, dict):
        return _typed_object(value, schema.branch("object"), repairs)
    if isinstance(value, list):
        branch = schema.branch("array")
        return [typed(item, branch.items(index), repairs) for index, item in enumerate(value)]
    if isinstance(value, bool) or value is None or not kinds:
        return value
    return _typed_number(value, kinds, repairs)


def _typed_object(value: dict[str, Any], schema: Schema, repairs: Repairs) -> dict[str, Any]:
    return {key: _typed_property(item, schema.property(key), repairs) for key, item in value.items()}


def _typed_property(value: Any, schema: Schema, repairs: Repairs) -> Any:
    if not isinstance(value, str):
        return typed(value, schema, repairs)
    kinds = schema.kinds()
    return _listed(_typed_string(value, schema, kinds, repairs), schema, kinds, repairs)


def _listed(value: Any, schema: Schema, kinds: frozenset[str], repairs: Repairs) -> Any:
    """A text that is choices, one behind the other, as the list that its schema wants; else the value."""
    if "array" not in kinds or "string" in kinds or not isinstance(value, str):
        return value
    made = _choices_in(value, schema.branch("array"))
    if not made:
        return value
    repairs.add("choices given as one text")
    return made


def _typed_number(value: float, kinds: frozenset[str], repairs: Repairs) -> Any:
    if isinstance(value, float) and "integer" in kinds and "number" not in kinds and value.is_integer():
        repairs.add("whole number written as a decimal")
        return int(value)
    if isinstance(value, int) and kinds <= {"string", "null"}:
        repairs.add("number given for text")
        return str(value)
    return value


def _typed_string(value: str, schema: Schema, kinds: frozenset[str], repairs: Repairs) -> Any:
    choices = schema.choices()
    if choices and value not in choices:
        number = None if "string" in kinds else _scalar(value.strip(), kinds)
        if number is None or number not in choices:
            return _choice(value, choices, kinds, repairs)
        repairs.add("value given as text")
        return number
    if not kinds or "string" in kinds:
        return value
    found = _of_text(value, schema, kinds, Repairs())
    if found is not value:
        repairs.add("value given as text")
        if isinstance(found, dict | list):
            return typed(found, schema, repairs)
    return found


def _choices_in(text: str, schema: Schema) -> list[str]:
    """The choices that a text puts one behind the other, "a, b"; none where anything else stands there."""
    choices = [choice for choice in schema.items(0).choices() if isinstance(choice, str)]
    folded = [choice.casefold() for choice in choices]
    made = []
    for part in _COMMA.split(text) if choices else ():
        written = part.strip()
        if written not in choices and folded.count(written.casefold()) != 1:
            return []
        made.append(written if written in choices else choices[folded.index(written.casefold())])
    return made


def _choice(value: str, choices: list[Any], kinds: frozenset[str], repairs: Repairs) -> Any:
    folded = value.strip().casefold()
    same = [choice for choice in choices if isinstance(choice, str) and choice.casefold() == folded]
    if len(same) == 1:
        repairs.add("case of a choice")
        return same[0]
    written = [choice for choice in choices if not isinstance(choice, str) and str(choice).casefold() == folded]
    if len(written) == 1 and "string" not in kinds:
        repairs.add("value given as text")
        return written[0]
    return value


def from_text(text: str, schema: Schema, repairs: Repairs) -> Any:
    """The value of an argument written as bare text, as tag forms carry it, typed by its schema.

    Where the schema allows text, text stays text unless it is exactly a value of another allowed type. Where the
    schema says nothing, only objects and arrays are decoded. What does not fit is handed back as it stands.
    """
    kinds = schema.kinds()
    return _listed(_of_text(text, schema, kinds, repairs), schema, kinds, repairs)


def _of_text(text: str, schema: Schema, kinds: frozenset[str], repairs: Repairs) -> Any:
    if kinds == {"string"}:
        return _typed_string(text, schema, kinds, repairs)
    written = text.strip()
    if not kinds:
        return _container(written, text, Repairs()) if written[:1] in ("{", "[") else text
    if "null" in kinds and written.casefold() in _NOTHING:
        return None
    found = _scalar(written, kinds)
    if found is not None:
        return found
    if kinds & {"object", "array"} and written[:1] in ("{", "["):
        mended = Repairs() if "string" in kinds else repairs
        value = _container(written, text, mended)
        fits = ("object" if isinstance(value, dict) else "array") in kinds
        if value is not text and fits and not (mended.told and "string" in kinds):
            return typed(value, schema, repairs)
    if "string" in kinds:
        return _typed_string(text, schema, kinds, repairs)
    return _choice(text, schema.choices(), kinds, repairs) if schema.choices() else text


def _scalar(written: str, kinds: frozenset[str]) -> Any:
    """The number or truth value that `written` is, if one of `kinds`; None where it is none."""
    if kinds & {"integer", "number"}:
        if _INTEGER.fullmatch(written):
            return int(written)
        if _NUMBER.fullmatch(written):
            value = float(written)
            if "number" in kinds:
                return value
            if value.is_integer():
                return int(value)
    if "boolean" in kinds:
        words = ("true", "false") if "string" in kinds or kinds & {"integer", "number"} else tuple(_BOOLEANS)
        if written.casefold() in words:
            return _BOOLEANS[written.casefold()]
    return None


def _container(written: str, otherwise: str, repairs: Repairs) -> Any:
    try:
        return strict(written)
    except ValueError:
        pass
    mended = Repairs()
    try:
        value = _unescaped(written, mended) or lenient(written, mended)
    except Unreadable:
        return otherwise
    if mended.unfinished or not isinstance(value, dict | list):
        return otherwise
    for repair in mended:
        repairs.add(repair)
    return value


def _unescaped(written: str, repairs: Repairs) -> Any:
    """The value of JSON whose quotation marks are all escaped, as inside a string; None where it is not that."""
    if '\\"' not in written or _BARE_QUOTE.search(written):
        return None
    try:
        value = strict(strict(f'"{written}"'))
    except (ValueError, TypeError):
        return None
    repairs.add("escaped quotation marks")
    return value
