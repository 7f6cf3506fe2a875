"""The grammar of a reply: calls with keyword arguments of the declared types, or the no-call option.

LLGuidance enforces it, which llama.cpp is built with in `xllamacpp`.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.date_formats import build_date_pattern, find_date_format
from opposable.models.python_protocol.prompts import CODE_FENCE, NO_CALL, list_parameters

MAX_LINES = 16
"""Calls of one reply."""

_SCHEMA_KEYWORDS = ("type", "enum", "items", "properties", "required", "anyOf", "oneOf", "additionalProperties")
"""The keywords of JSON Schema that the grammar enforces. LLGuidance rejects some of the others."""


def build_grammar(tools: Sequence[ToolDefinition], *, may_pass: bool) -> str:
    """Return the grammar of a reply that calls some of the tools.

    Args:
        tools: The tools offered.
        may_pass: Whether the reply may be the no-call option.
    """
    calls = " | ".join(f"call_{n}" for n in range(len(tools)))
    rules = [rule for n, tool in enumerate(tools) for rule in _build_call_rules(n, tool)]
    body = f'lines | "{NO_CALL}"' if may_pass else "lines"
    return "\n".join(
        [
            "%llguidance {}",
            f'start: ({body}) "\\n{CODE_FENCE}"',
            f'lines: call ("\\n" call){{0,{MAX_LINES - 1}}}',
            f"call: {calls}",
            *rules,
        ]
    )


def _build_call_rules(n: int, tool: ToolDefinition) -> list[str]:
    """Return the rules of one tool: required arguments, then any of the optional ones, in the order of its signature."""
    required = set(tool.parameters.get("required") or ())
    names = list_parameters(tool)
    rules = [_build_argument_rule(name, f"{n}_{at}", tool) for at, name in enumerate(names)]
    labels = [f"arg_{n}_{at}" for at in range(len(names))]
    count = sum(name in required for name in names)
    # without required arguments, any optional one can be the first
    starts = [0] if count else range(len(names))
    arguments = " | ".join(_join_arguments(labels[at:], max(1, count)) for at in starts)
    arguments = f"({arguments})" + ("" if count else "?") if names else ""
    return [f'call_{n}: {_quote(tool.name + "(")} {arguments} ")"', *rules]


def _build_argument_rule(name: str, label: str, tool: ToolDefinition) -> str:
    about = tool.parameters["properties"][name]
    schema = orjson.dumps(simplify_schema(about if isinstance(about, dict) else {})).decode()
    return f"arg_{label}: {_quote(name + '=')} %json {schema}"


def _join_arguments(labels: Sequence[str], required_count: int) -> str:
    """Return arguments with commas between them, of which only the first ones are required."""
    required, optional = labels[:required_count], labels[required_count:]
    return ' ", " '.join(required) + "".join(f' (", " {label})?' for label in optional)


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the keywords that the grammar enforces."""
    simple = {key: schema[key] for key in _SCHEMA_KEYWORDS if key in schema}
    if isinstance(simple.get("properties"), dict):
        simple["properties"] = {
            name: simplify_schema(about if isinstance(about, dict) else {})
            for name, about in simple["properties"].items()
        }
        simple["required"] = [name for name in simple.get("required") or () if name in simple["properties"]]
        simple.setdefault("additionalProperties", False)
    else:
        simple.pop("required", None)
    if date_format := find_date_format(schema):
        simple["pattern"] = build_date_pattern(date_format)
    if isinstance(simple.get("items"), dict):
        simple["items"] = simplify_schema(simple["items"])
    for key in ("anyOf", "oneOf"):
        if key in simple:
            simple[key] = [simplify_schema(option) for option in simple[key] if isinstance(option, dict)]
    return simple


def _quote(text: str) -> str:
    return orjson.dumps(text).decode()
