"""The grammar of a reply: calls with keyword arguments of the declared types, or the no-call option.

LLGuidance enforces it, which llama.cpp is built with in `xllamacpp`.
"""

import re
from collections.abc import Sequence
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.described_formats import find_pattern
from opposable.models.python_protocol.prompts import CODE_FENCE, NO_CALL, list_parameters

MAX_LINES = 16
"""Calls of one reply."""

_SCHEMA_KEYWORDS = ("type", "enum", "items", "properties", "required", "anyOf", "oneOf", "additionalProperties")
"""The keywords of JSON Schema that the grammar enforces. LLGuidance rejects some of the others."""


PYTHON_LITERALS = {"true": "True", "false": "False", "null": "None"}
"""Literals of Python, by those of JSON."""

_PYTHON_LITERAL_PATTERN = re.compile(r'"boolean"|\bnull\b')


def build_grammar(tools: Sequence[ToolDefinition], *, may_pass: bool) -> str:
    """Return the grammar of a reply that calls some of the tools.

    Args:
        tools: The tools offered.
        may_pass: Whether the reply may be the no-call option.
    """
    calls = " | ".join(f"call_{n}" for n in range(len(tools)))
    rules: dict[str, str] = {}
    call_rules = [
        f'call_{n}: {_quote(tool.name + "(")} {_join_properties(simplify_schema(tool.parameters), rules)} ")"'
        for n, tool in enumerate(tools)
    ]
    body = f'lines | "{NO_CALL}"' if may_pass else "lines"
    return "\n".join(
        [
            "%llguidance {}",
            f'start: ({body}) "\\n{CODE_FENCE}"',
            f'lines: call ("\\n" call){{0,{MAX_LINES - 1}}}',
            f"call: {calls}",
            *call_rules,
            *(f"{name}: {body}" for body, name in rules.items()),
        ]
    )


def _build_value(schema: dict[str, Any], rules: dict[str, str]) -> str:
    """Return the name of the rule for a value.

    Booleans and null are Python's literals, the rest is JSON. The model writes `True`: where it may only write `true`,
    the probabilities of true and false mean nothing.
    """
    body = f"%json {dump_json(schema).decode()}"
    if not _PYTHON_LITERAL_PATTERN.search(body):
        return _name_rule(body, rules)
    options = schema.get("anyOf") or schema.get("oneOf") or []
    if isinstance(kinds := schema.get("type"), list):
        options = [{**schema, "type": kind} for kind in kinds]
    if "enum" in schema:
        choices = [dump_json(value).decode() for value in schema["enum"]]
        body = " | ".join(_quote(PYTHON_LITERALS.get(choice, choice)) for choice in choices)
    elif options:
        body = " | ".join(_build_value(option, rules) for option in options)
    elif kinds == "boolean":
        body = '"True" | "False"'
    elif kinds == "null":
        body = '"None"'
    elif kinds == "array" and isinstance(schema.get("items"), dict):
        item = _build_value(schema["items"], rules)
        body = f'"[" ({item} (", " {item})*)? "]"'
    elif kinds == "object" and schema.get("properties") and not schema["additionalProperties"]:
        body = f'"{{" {_join_properties(schema, rules, in_object=True)} "}}"'
    return _name_rule(body, rules)


def _join_properties(schema: dict[str, Any], rules: dict[str, str], *, in_object: bool = False) -> str:
    """Return names and values with commas between them: required ones, then any of the optional ones."""
    names = list_parameters(schema)
    keys = [_quote(f"{_quote(name)}: " if in_object else f"{name}=") for name in names]
    values = [_build_value(schema["properties"][name], rules) for name in names]
    labels = [_name_rule(f"{key} {value}", rules) for key, value in zip(keys, values, strict=True)]
    count = sum(name in schema["required"] for name in names)
    # without required ones, any optional one can be the first
    starts = [0] if count else range(len(labels))
    joined = " | ".join(_join_labels(labels[at:], max(1, count)) for at in starts)
    return f"({joined})" + ("" if count else "?") if labels else ""


def _name_rule(body: str, rules: dict[str, str]) -> str:
    """Return the name of the rule with this body; equal ones are one rule."""
    return rules.setdefault(body, f"rule_{len(rules)}")


def _join_labels(labels: Sequence[str], required_count: int) -> str:
    """Return rules with commas between them, of which only the first ones are required."""
    required, optional = labels[:required_count], labels[required_count:]
    return ' ", " '.join(required) + "".join(f' (", " {label})?' for label in optional)


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


def _quote(text: str) -> str:
    return dump_json(text).decode()
