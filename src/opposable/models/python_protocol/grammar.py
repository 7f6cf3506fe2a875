"""The grammar of a reply: calls with keyword arguments of the declared types.

LLGuidance enforces it, which llama.cpp is built with in `xllamacpp`.
"""

import re
from collections.abc import Sequence
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.prompts import CODE_FENCE, list_parameters

MAX_LINES = 16
"""Calls of one reply."""

_SCHEMA_KEYWORDS = ("type", "enum", "items", "properties", "required", "anyOf", "oneOf", "additionalProperties")
"""The keywords of JSON Schema that the grammar enforces. LLGuidance rejects some of the others."""


PYTHON_LITERALS = {"true": "True", "false": "False", "null": "None"}
"""Literals of Python, by those of JSON."""

NUMBER_PATTERN = re.compile("-?[0-9]+([.][0-9]+)?")
"""A text that the model may write without quotes."""
_PARTS_FORMAT_PATTERN = re.compile(r"[Ff]ormat\w*[^'\"`]{0,25}['\"`]([A-Z][A-Za-z ]*(?:, [A-Z][A-Za-z ]*)+)")
"""A quoted format of parts between commas, such as 'City, State'."""
_SEPARATOR = r"/,( |\n {0,16})/"
"""Between the items of a list."""


def build_grammar(tools: Sequence[ToolDefinition]) -> str:
    """Return the grammar of a reply that calls some of the tools."""
    calls = " | ".join(f"call_{n}" for n in range(len(tools)))
    rules: dict[str, str] = {}
    call_rules = [
        f'call_{n}: {_quote(tool.name + "(")} {_join_properties(simplify_schema(tool.parameters), rules)} ")"'
        for n, tool in enumerate(tools)
    ]
    return "\n".join(
        [
            "%llguidance {}",
            f'start: call ("\\n" call){{0,{MAX_LINES - 1}}} "\\n{CODE_FENCE}"',
            f"call: {calls}",
            *call_rules,
            *(f"{name}: {body}" for body, name in rules.items()),
        ]
    )


def _build_value(schema: dict[str, Any], rules: dict[str, str]) -> str:
    """Return the name of the rule for a value, written as a literal of Python.

    The rule allows what the model prefers to write: where it may only write `true`, or only a quoted number, the
    probabilities of what it writes instead mean nothing.
    """
    options = schema.get("anyOf") or schema.get("oneOf") or []
    if isinstance(kind := schema.get("type"), list):
        options = [{**schema, "type": one} for one in kind]
    if "enum" in schema:
        choices = [dump_json(value).decode() for value in schema["enum"]]
        body = " | ".join(_quote(PYTHON_LITERALS.get(choice, choice)) for choice in choices)
    elif kind == "boolean":
        body = '"True" | "False"'
    elif kind == "null":
        body = '"None"'
    elif kind == "array" and isinstance(schema.get("items"), dict):
        item = _build_value(schema["items"], rules)
        body = f'"[" ({item} ({_SEPARATOR} {item})*)? "]"'
    elif kind == "object" and schema.get("properties") and not schema["additionalProperties"]:
        body = f'"{{" {_join_properties(schema, rules, in_object=True)} "}}"'
    elif options:
        body = " | ".join(_build_value(option, rules) for option in options)
    else:
        body = f"%json {dump_json(schema).decode()}"
    return _name_rule(body, rules)


def _build_argument(schema: dict[str, Any], rules: dict[str, str]) -> str:
    """Return the name of the rule for an argument, which may be a number without quotes where a text is expected."""
    value = _build_value(schema, rules)
    if schema.get("type") != "string" or "pattern" in schema:
        return value
    numbers = [each for each in schema.get("enum", ()) if isinstance(each, str) and NUMBER_PATTERN.fullmatch(each)]
    bare = [_quote(number) for number in numbers] if "enum" in schema else [f"/{NUMBER_PATTERN.pattern}/"]
    return _name_rule(" | ".join([value, *bare]), rules)


def _join_properties(schema: dict[str, Any], rules: dict[str, str], *, in_object: bool = False) -> str:
    """Return names and values with commas between them: required ones, then optional ones in any order."""
    names = list_parameters(schema)
    keys = [_quote(f"{_quote(name)}: " if in_object else f"{name}=") for name in names]
    build = _build_value if in_object else _build_argument
    values = [build(schema["properties"][name], rules) for name in names]
    labels = [_name_rule(f"{key} {value}", rules) for key, value in zip(keys, values, strict=True)]
    count = sum(name in schema["required"] for name in names)
    required = ' ", " '.join(labels[:count])
    if count == len(labels):
        return f"({required})" if labels else ""
    optional = _name_rule(" | ".join(labels[count:]), rules)
    further_count = len(labels) - max(1, count)  # LLGuidance rejects {0,0}
    more = f'(", " {optional}){{0,{further_count}}}' if further_count else ""
    return f"({required} {more})" if count else f"({optional} {more})?"


def _name_rule(body: str, rules: dict[str, str]) -> str:
    """Return the name of the rule with this body; equal ones are one rule."""
    return rules.setdefault(body, f"rule_{len(rules)}")


def simplify_schema(schema: Any) -> dict[str, Any]:
    """Return the schema with the keywords that the grammar enforces; {} for one that allows anything."""
    if not isinstance(schema, dict):
        return {}
    simple = {key: schema[key] for key in _SCHEMA_KEYWORDS if key in schema}
    if isinstance(simple.get("properties"), dict):
        simple["properties"] = {name: simplify_schema(about) for name, about in simple["properties"].items()}
        simple["required"] = [name for name in simple.get("required") or () if name in simple["properties"]]
        simple.setdefault("additionalProperties", False)
    else:
        simple.pop("required", None)
    if pattern := find_pattern(schema):
        simple["pattern"] = pattern
    if isinstance(simple.get("items"), dict):
        simple["items"] = simplify_schema(simple["items"])
    for key in ("anyOf", "oneOf"):
        if key in simple:
            simple[key] = [simplify_schema(option) for option in simple[key] if isinstance(option, dict)]
    return simple


def find_pattern(schema: dict[str, Any]) -> str:
    """Return a pattern for the only format of parts that the description of a text names; "" without one."""
    description = schema.get("description")
    if schema.get("type") != "string" or "enum" in schema or not isinstance(description, str):
        return ""
    comma_counts = {parts.count(",") for parts in _PARTS_FORMAT_PATTERN.findall(description)}
    return f"^[^,]+(, [^,]+){{{comma_counts.pop()},}}$" if len(comma_counts) == 1 else ""


def _quote(text: str) -> str:
    return dump_json(text).decode()
