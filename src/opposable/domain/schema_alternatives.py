"""Schemas of arguments without alternatives at the top level, which hosted APIs refuse."""

from collections.abc import Mapping
from typing import Any

from opposable.domain.json_text import dump_json

_COMBINATORS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = (*_COMBINATORS, "not", "if", "then", "else", "enum", "const")


def flatten_alternatives(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments with `properties` alone; the same object if it has nothing else.

    The APIs of OpenAI and Anthropic refuse every request with a tool whose schema has `anyOf` or the like at the top.
    The properties of all members are listed, and the conditions become text. Arguments are validated as declared.
    """
    if schema.keys().isdisjoint(_CONDITIONS):
        return schema
    properties: dict[str, Any] = dict(schema.get("properties") or {})
    required = list(schema.get("required") or ())
    for keyword in _COMBINATORS:
        members = [_resolve(member, schema) for member in schema.get(keyword) or ()]
        for member in members:
            for name, about in (member.get("properties") or {}).items():
                known = properties.setdefault(name, about)
                if known != about:
                    properties[name] = {"anyOf": [*_list_alternatives(known), about]}
        sets = [set(member.get("required") or ()) for member in members]
        shared = (set.union if keyword == "allOf" else set.intersection)(*sets) if sets else set()
        required += sorted(shared - {*required})
    conditions = {key: schema[key] for key in _CONDITIONS if key in schema}
    text = f"The arguments must also match this JSON Schema: {dump_json(conditions).decode()}"
    description = "\n".join(filter(None, (schema.get("description"), text)))
    remaining = {key: value for key, value in schema.items() if key not in _CONDITIONS}
    more = {"required": required} if required else {}
    return {**remaining, "type": "object", "description": description, "properties": properties, **more}


def _resolve(member: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the member of a combinator, by a reference into the same schema if it is one."""
    if not isinstance(member, dict):
        return {}
    reference = member.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return member
    target: Any = schema
    for step in reference[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else {}


def _list_alternatives(about: Any) -> list[Any]:
    is_union = isinstance(about, dict) and about.keys() == {"anyOf"}
    return about["anyOf"] if is_union else [about]
