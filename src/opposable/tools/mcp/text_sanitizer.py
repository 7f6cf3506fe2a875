"""What a server writes of its tools, made harmless before a model reads it."""

import re
import unicodedata
from typing import Any

MAX_DESCRIPTION_CHARACTERS = 4_000
"""Characters of a tool's description that a model is told."""
MAX_PARAMETER_DESCRIPTION_CHARACTERS = 1_000
"""Characters of the description of one parameter."""
WORD_JOINER = "\u2060"
"""A word joiner: it has no width, and no marker of a model family has it inside."""

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Co", "Cs"}
_MODEL_MARKER_PATTERN = re.compile(
    r"<[|｜][^<>\n]{1,64}[|｜]>|</?s>|\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?(?:tool_calls?|tool_response|tools|function_calls?|function|invoke|parameter|think|thinking|arg_key|arg_value)"
    r"\b|<(?:start|end)_of_\w{1,20}>|<(?:system|important|instructions?)>",
    re.IGNORECASE,
)
_TEXT_KEYS = ("description", "title", "$comment")


def sanitize_text(text: str, max_characters: int = MAX_DESCRIPTION_CHARACTERS) -> str:
    """A server's text without characters nobody sees, with the markup of model families broken, and not too long."""
    seen = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _HIDDEN_CATEGORIES)
    told = _MODEL_MARKER_PATTERN.sub(lambda found: f"{found[0][0]}{WORD_JOINER}{found[0][1:]}", seen).strip()
    return told if len(told) <= max_characters else told[:max_characters].rstrip() + "…"


def sanitize_schema(node: Any) -> Any:
    """A schema with the texts for the reader made harmless; what a value is checked by stays as it is."""
    if isinstance(node, list):
        return [sanitize_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _sanitize_value(key, value) for key, value in node.items() if key != "$schema"}


def _sanitize_value(key: str, value: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
        return {name: sanitize_schema(inner) for name, inner in value.items()}
    if key in _TEXT_KEYS and isinstance(value, str):
        return sanitize_text(value, MAX_PARAMETER_DESCRIPTION_CHARACTERS)
    return value if key in ("enum", "const", "default", "examples", "required") else sanitize_schema(value)
