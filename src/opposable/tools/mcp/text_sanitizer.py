"""What a server writes of its tools, made harmless before a model reads it."""

import re
import unicodedata
from typing import Any

DESCRIPTION_CAP = 4_000
"""Characters of a tool's description that a model is told."""
PARAMETER_CAP = 1_000
"""Characters of the description of one parameter."""
BREAK = "\u2060"
"""A word joiner: it has no width, and no marker of a model family has it inside."""

_HIDDEN = {"Cc", "Cf", "Co", "Cs"}
_MARKER = re.compile(
    r"<[|｜][^<>\n]{1,64}[|｜]>|</?s>|\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?(?:tool_calls?|tool_response|tools|function_calls?|function|invoke|parameter|think|thinking|arg_key|arg_value)"
    r"\b|<(?:start|end)_of_\w{1,20}>|<(?:system|important|instructions?)>",
    re.IGNORECASE,
)
_TEXTS = ("description", "title", "$comment")


def harmless(text: str, cap: int = DESCRIPTION_CAP) -> str:
    """A server's text without characters nobody sees, with the markup of model families broken, and not too long."""
    seen = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _HIDDEN)
    told = _MARKER.sub(lambda found: f"{found[0][0]}{BREAK}{found[0][1:]}", seen).strip()
    return told if len(told) <= cap else told[:cap].rstrip() + "…"


def harmless_schema(node: Any) -> Any:
    """A schema with the texts for the reader made harmless; what a value is checked by stays as it is."""
    if isinstance(node, list):
        return [harmless_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _part(key, value) for key, value in node.items() if key != "$schema"}


def _part(key: str, value: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
        return {name: harmless_schema(inner) for name, inner in value.items()}
    if key in _TEXTS and isinstance(value, str):
        return harmless(value, PARAMETER_CAP)
    return value if key in ("enum", "const", "default", "examples", "required") else harmless_schema(value)
