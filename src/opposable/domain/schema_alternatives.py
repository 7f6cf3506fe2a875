"""Schemas of arguments without alternatives at the top level, which hosted APIs refuse."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import dump_json

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = (*_COMBINATORS, "not", "if", "then", "else", "enum", "const")
_CLOSING_KEYWORDS = ("additionalProperties", "unevaluatedProperties")
_OPENING_KEYWORDS = frozenset({*_CLOSING_KEYWORDS, "patternProperties", "dependentSchemas", "$dynamicRef"})
"""Keywords of a member that may allow properties which no `properties` lists."""
_MAX_DEPTH = 20


class _Part(NamedTuple):
    """What a schema says of the properties, with its members. `is_complete` says whether it lists all it allows."""

    properties: dict[str, Any]
    required: list[str]
    is_complete: bool


def flatten_alternatives(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments with `properties` alone; the same object if it has nothing else.

    The APIs of OpenAI and Anthropic refuse every request with a tool whose schema has `anyOf` or the like at the top.
    The properties of all members are listed, and the conditions become text; what is malformed is left out.
    Arguments are validated as declared.
    """
    if schema.keys().isdisjoint(_CONDITIONS):
        return schema
    part = _collect(schema, schema, {})
    conditions = {
        key: schema[key]
        for key in _CONDITIONS
        if key in schema and (key not in _COMBINATORS or isinstance(schema[key], list))
    }
    text = f"The arguments must also match this JSON Schema: {dump_json(conditions).decode()}" if conditions else ""
    texts = [text for text in (schema.get("description"), text) if isinstance(text, str) and text]
    remaining = {
        key: value
        for key, value in schema.items()
        if key not in (*_CONDITIONS, "required")
        and (part.is_complete or key not in _CLOSING_KEYWORDS or value is not False)
    }
    flat = {**remaining, "type": "object", "description": "\n".join(texts), "properties": part.properties}
    return flat | ({"required": part.required} if part.required else {})


def _collect(node: Any, root: Mapping[str, Any], known: dict[int, _Part], depth: int = 0) -> _Part:
    """Return the properties of a schema and its members. `known` has the parts by the id of their schemas."""
    if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
        return _Part({}, [], not isinstance(node, Mapping))
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = _Part({}, [], is_complete=True)  # in a circle, a schema adds nothing
    declared, names = node.get("properties"), node.get("required")
    properties = dict(declared) if isinstance(declared, Mapping) else {}
    required = [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
    is_complete = depth == 0 or _OPENING_KEYWORDS.isdisjoint(key for key in node if node[key] is not False)
    members = {key: node[key] for key in _COMBINATORS if isinstance(node.get(key), list)}
    members["then"] = [node[key] for key in ("then", "else") if key in node]
    if isinstance(node.get("$ref"), str):
        try:
            members["allOf"] = [resolve_pointer(root, node["$ref"]), *members.get("allOf", ())]
        except LookupError:
            is_complete = False
    for keyword, schemas in members.items():
        parts = [_collect(schema, root, known, depth + 1) for schema in schemas]
        for part in parts:
            for name, about in part.properties.items():
                properties[name] = _join_alternatives(properties[name], about) if name in properties else about
        sets = [{*part.required} for part in parts if keyword != "then"]  # which applies only in some cases
        shared = (set.union if keyword == "allOf" else set.intersection)(*sets) if sets else set()
        required += sorted(shared - {*required})
        is_complete = is_complete and all(part.is_complete for part in parts)
    known[id(node)] = _Part(properties, required, is_complete)
    return known[id(node)]


def _join_alternatives(known: Any, about: Any) -> Any:
    """Return the schema of a property of which two schemas say something, each alternative once."""
    alternatives = [*_list_alternatives(known)]
    alternatives += [one for one in _list_alternatives(about) if one not in alternatives]
    return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}


def _list_alternatives(about: Any) -> list[Any]:
    is_union = isinstance(about, Mapping) and about.keys() == {"anyOf"} and isinstance(about["anyOf"], list)
    return about["anyOf"] if is_union else [about]
