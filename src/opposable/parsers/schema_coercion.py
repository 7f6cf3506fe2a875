"""Coercion of values to the types of a tool's JSON Schema."""

import re
from decimal import Decimal
from typing import Any

from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import parse_json
from opposable.parsers.lenient_json import Repairs, UnreadableText, parse_lenient

MAX_INTEGER_DIGITS = 300
_INTEGER = re.compile(rf"[+-]?\d{{1,{MAX_INTEGER_DIGITS}}}")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_CHOICE_SEPARATOR = re.compile(r"[,，、;；]")
_LIST_TEXT = re.compile(r"[,，、;；|\n]|^\s*[\[{(]")
"""What a text has that may be a list: a separator, or an opening bracket at its start."""
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_NULL_WORDS = frozenset({"null", "none", "nil"})
_JSON_TYPE_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
TYPE_ALIASES = {
    "int": "integer", "long": "integer", "float": "number", "double": "number", "decimal": "number", "bool": "boolean",
    "str": "string", "text": "string", "list": "array", "tuple": "array", "dict": "object", "map": "object", "none": "null",
}  # fmt: skip
"""Type names in hand-written tool definitions, mapped to those of JSON Schema."""
MAX_REFERENCE_DEPTH = 32


class SchemaNode:
    """One node of a JSON Schema, with local references resolved."""

    __slots__ = ("_validator", "node", "root")

    def __init__(self, node: Any, root: dict[str, Any] | None = None) -> None:
        self.root: dict[str, Any] = root if root is not None else (node if isinstance(node, dict) else {})
        self.node: dict[str, Any] = self._resolve_references(node)
        self._validator: Any = None

    def _resolve_references(self, node: Any) -> dict[str, Any]:
        for _ in range(MAX_REFERENCE_DEPTH):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                break
            try:
                node = resolve_pointer(self.root, node["$ref"])
            except LookupError:
                return {}
        return node if isinstance(node, dict) else {}

    def find_invalid_paths(self, value: Any) -> list[str] | None:
        """Return the paths of the invalid parts of a value of the root schema, or None if that cannot be compiled."""
        import jsonschema_rs  # lazy: only a value that coercion changes is validated

        try:
            if self._validator is None:
                self._validator = jsonschema_rs.validator_for(
                    self.root, retriever=_reject_reference, validate_formats=False
                )
            return [".".join(map(str, error.instance_path)) for error in self._validator.iter_errors(value)]
        except (ValueError, TypeError, RecursionError, jsonschema_rs.ReferencingError):
            return None

    def properties(self) -> dict[str, Any]:
        """Return the properties of this node and of its `allOf`."""
        properties = dict(_as_mapping(self.node.get("properties")))
        for subschema in _as_sequence(self.node.get("allOf")):
            properties.update(SchemaNode(subschema, self.root).properties() if subschema is not self.node else {})
        return properties

    def required_names(self) -> tuple[str, ...]:
        """Return the names of the required properties."""
        return tuple(name for name in _as_sequence(self.node.get("required")) if isinstance(name, str))

    def lacks_property(self, value: dict[str, Any]) -> bool:
        """Return whether an object lacks a property, also an optional one: where text is cut off, it may be lost."""
        return any(name not in value for name in (*self.required_names(), *self.properties()))

    def get_property(self, name: str) -> "SchemaNode":
        """Return the schema of a property; an empty one if it has none."""
        properties = _as_mapping(self.node.get("properties"))
        if name not in properties and "allOf" in self.node:
            properties = self.properties()
        if name in properties:
            return SchemaNode(properties[name], self.root)
        return SchemaNode(self.node.get("additionalProperties"), self.root)

    def get_item_schema(self, index: int) -> "SchemaNode":
        """Return the schema of the array item at `index`."""
        first = _as_sequence(self.node.get("prefixItems"))
        return SchemaNode(first[index] if index < len(first) else self.node.get("items"), self.root)

    def alternatives(self) -> list["SchemaNode"]:
        """Return the alternatives of `anyOf` and `oneOf`, or this node alone."""
        nodes = [*_as_sequence(self.node.get("anyOf")), *_as_sequence(self.node.get("oneOf"))]
        return [SchemaNode(node, self.root) for node in nodes] or [self]

    def allowed_types(self, depth: int = 0) -> frozenset[str]:
        """Return the JSON types allowed here; empty if the schema does not restrict them."""
        if depth > 8:
            return frozenset()
        types = set(_get_declared_types(self.node))
        alternatives = self.alternatives()
        if alternatives != [self]:
            types.update(
                type_name for alternative in alternatives for type_name in alternative.allowed_types(depth + 1)
            )
        if not types:
            for subschema in _as_sequence(self.node.get("allOf")):
                types.update(SchemaNode(subschema, self.root).allowed_types(depth + 1))
        if types and self.node.get("nullable") is True:
            types.add("null")
        return frozenset(types)

    def list_object_schemas(self, value: dict[str, Any]) -> list["SchemaNode"]:
        """Return the alternatives that an object can fit by its constants and required properties; this node for none."""
        objects = [one for one in self.alternatives() if "object" in one.allowed_types(1)]
        if len(objects) > 1:
            objects = [one for one in objects if one.can_fit(value)]
        return objects or [self]

    def can_fit(self, value: dict[str, Any]) -> bool:
        """Return whether an object has the required properties, and a choice where a property has `const` or `enum`."""
        if any(name not in value for name in self.required_names()):
            return False
        limited = {name: node for name in value if _get_choices((node := self.get_property(name)).node)}
        return all(coerce_value(value[k], node, Repairs()) in _get_choices(node.node) for k, node in limited.items())

    def get_alternative(self, type_name: str) -> "SchemaNode":
        """Return the alternative that allows `type_name`."""
        for alternative in self.alternatives():
            if type_name in alternative.allowed_types(1) or (
                type_name == "integer" and "number" in alternative.allowed_types(1)
            ):
                return alternative
        return self

    def choices(self) -> list[Any]:
        """Return the values of `enum` and `const`, including those of the alternatives."""
        values = _get_choices(self.node)
        for alternative in self.alternatives():
            if alternative is not self:
                values += _get_choices(alternative.node)
        return values


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, which is not in it")


def _get_declared_types(node: dict[str, Any]) -> list[str]:
    declared = node.get("type")
    if isinstance(declared, str):
        return [TYPE_ALIASES.get(declared, declared)]
    if isinstance(declared, list):
        return [TYPE_ALIASES.get(type_name, type_name) for type_name in declared if isinstance(type_name, str)]
    if values := _get_choices(node):
        return list({_JSON_TYPE_NAMES.get(type(value), "null") for value in values})
    if "properties" in node:
        return ["object"]
    return ["array"] if "items" in node or "prefixItems" in node else []


def _get_choices(node: dict[str, Any]) -> list[Any]:
    return [*_as_sequence(node.get("enum")), *([node["const"]] if "const" in node else [])]


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def coerce_value(value: Any, schema: SchemaNode, repairs: Repairs) -> Any:
    """Coerce a decoded JSON value to the type of its schema, without guessing."""
    types = schema.allowed_types()
    return _put_in_list(_coerce_to_types(value, schema, types, repairs), schema, types, repairs)


def _coerce_to_types(value: Any, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    if isinstance(value, str):
        return _coerce_string(value, schema, types, repairs)
    if isinstance(value, dict):
        schemas = schema.list_object_schemas(value)
        return {
            key: _coerce_common_property(item, [one.get_property(key) for one in schemas], repairs)
            for key, item in value.items()
        }
    if isinstance(value, list):
        array_schema = schema.get_alternative("array")
        return [coerce_value(item, array_schema.get_item_schema(index), repairs) for index, item in enumerate(value)]
    if isinstance(value, bool) or value is None or not types:
        return value
    return _coerce_number(value, types, repairs)


def _put_in_list(value: Any, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    """Return a list of the value where only a list fits. A text that may itself be a list is returned unchanged."""
    if "array" not in types or value is None or types & _get_json_types(value):
        return value
    if isinstance(value, str) and (not value or _LIST_TEXT.search(value)):
        return value
    item_schema = schema.get_alternative("array").get_item_schema(0)
    item_types, choices = item_schema.allowed_types(), item_schema.choices()
    item = coerce_value(value, item_schema, repairs)
    if (item_types and not item_types & _get_json_types(item)) or (choices and item not in choices):
        return value
    repairs.add("list of one value")
    return [item]


def _get_json_types(value: Any) -> set[str]:
    """Return the JSON types of a value: a whole number is a number too."""
    return {"integer", "number"} if type(value) is int else {_JSON_TYPE_NAMES[type(value)]}


def _coerce_common_property(value: Any, schemas: list[SchemaNode], repairs: Repairs) -> Any:
    """Coerce a property of an object that can fit several alternatives, unless they disagree about it.

    Objects and lists are coerced by one schema only: several would take exponential time in the depth of the value.
    """
    if any(schema.node != schemas[0].node for schema in schemas):
        if isinstance(value, dict | list):
            return value
        results = [_coerce_property(value, schema, Repairs()) for schema in schemas]
        if any((type(result), result) != (type(results[0]), results[0]) for result in results):
            return value
    return _coerce_property(value, schemas[0], repairs)


def _coerce_property(value: Any, schema: SchemaNode, repairs: Repairs) -> Any:
    if not isinstance(value, str):
        return coerce_value(value, schema, repairs)
    types = schema.allowed_types()
    coerced = _coerce_choice_list(_coerce_string(value, schema, types, repairs), schema, types, repairs)
    return _put_in_list(coerced, schema, types, repairs)


def _coerce_choice_list(value: Any, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    """Coerce a text that lists choices to a list; return other values unchanged."""
    if "array" not in types or "string" in types or not isinstance(value, str):
        return value
    choices = _split_choices(value, schema.get_alternative("array"))
    if not choices:
        return value
    repairs.add("choices given as one text")
    return choices


def _coerce_number(value: float, types: frozenset[str], repairs: Repairs) -> Any:
    if isinstance(value, float) and "integer" in types and "number" not in types and value.is_integer():
        repairs.add("whole number written as a decimal")
        return int(Decimal(repr(value)))
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
    decoded = _parse_text(value, schema, types, Repairs())
    if decoded is not value:
        repairs.add("value given as text")
        if isinstance(decoded, dict | list):
            return coerce_value(decoded, schema, repairs)
    return decoded


def _split_choices(text: str, schema: SchemaNode) -> list[str]:
    """Split a text such as "a, b" into choices; return [] if any part is not a choice."""
    choices = [choice for choice in schema.get_item_schema(0).choices() if isinstance(choice, str)]
    folded = [choice.casefold() for choice in choices]
    selected = []
    for part in _CHOICE_SEPARATOR.split(text) if choices else ():
        text_part = part.strip()
        if text_part not in choices and folded.count(text_part.casefold()) != 1:
            return []
        selected.append(text_part if text_part in choices else choices[folded.index(text_part.casefold())])
    return selected


def _coerce_choice(value: str, choices: list[Any], types: frozenset[str], repairs: Repairs) -> Any:
    folded = value.strip().casefold()
    same = [choice for choice in choices if isinstance(choice, str) and choice.casefold() == folded]
    if len(same) == 1:
        repairs.add("case of a choice")
        return same[0]
    non_text = [choice for choice in choices if not isinstance(choice, str) and str(choice).casefold() == folded]
    if len(non_text) == 1 and "string" not in types:
        repairs.add("value given as text")
        return non_text[0]
    return value


def coerce_text(text: str, schema: SchemaNode, repairs: Repairs) -> Any:
    """Coerce an argument written as bare text, as in tag formats.

    If the schema allows strings, the text stays a string unless it is exactly a value of another allowed type, and a
    number only if it is written as JSON writes it: `007` and `1.50` are text. If the schema does not restrict types,
    only objects and arrays are decoded. A value that does not fit is returned unchanged.
    """
    types = schema.allowed_types()
    return _coerce_choice_list(_parse_text(text, schema, types, repairs), schema, types, repairs)


def _parse_text(text: str, schema: SchemaNode, types: frozenset[str], repairs: Repairs) -> Any:
    if types == {"string"}:
        return _coerce_string(text, schema, types, repairs)
    stripped = text.strip()
    if not types:
        return _parse_container(stripped, text, Repairs()) if stripped[:1] in ("{", "[") else text
    if "null" in types and stripped.casefold() in _NULL_WORDS:
        return None
    scalar = _parse_scalar(stripped, types)
    if scalar is not None and (isinstance(scalar, bool) or "string" not in types or str(scalar) == text):
        return scalar
    if types & {"object", "array"} and stripped[:1] in ("{", "["):
        container_repairs = Repairs() if "string" in types else repairs
        value = _parse_container(stripped, text, container_repairs)
        fits = ("object" if isinstance(value, dict) else "array") in types
        if value is not text and fits and not (container_repairs.entries and "string" in types):
            return coerce_value(value, schema, repairs)
    if "string" in types:
        return _coerce_string(text, schema, types, repairs)
    return _coerce_choice(text, schema.choices(), types, repairs) if schema.choices() else text


def _parse_scalar(text: str, types: frozenset[str]) -> Any:
    """Parse a number or boolean of one of `types`; return None if `text` is not one."""
    if types & {"integer", "number"}:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            if "number" in types:
                return float(text)
            value = Decimal(text)
            if value.adjusted() < MAX_INTEGER_DIGITS and value == value.to_integral_value():
                return int(value)
    if "boolean" in types:
        words = ("true", "false") if "string" in types or types & {"integer", "number"} else tuple(_BOOLEANS)
        if text.casefold() in words:
            return _BOOLEANS[text.casefold()]
    return None


def _parse_container(text: str, default: str, repairs: Repairs) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        pass
    new_repairs = Repairs()
    try:
        value = _parse_escaped_json(text, new_repairs) or parse_lenient(text, new_repairs)
    except UnreadableText:
        return default
    if new_repairs.is_unfinished or not isinstance(value, dict | list):
        return default
    for repair in new_repairs:
        repairs.add(repair)
    return value


def _parse_escaped_json(text: str, repairs: Repairs) -> Any:
    """Parse JSON whose quotation marks are all escaped, as inside a string.

    Return None for other text.
    """
    if '\\"' not in text or _BARE_QUOTE.search(text):
        return None
    try:
        value = parse_json(parse_json(f'"{text}"'))
    except (ValueError, TypeError):
        return None
    repairs.add("escaped quotation marks")
    return value
