"""Sanitizes a server's texts about its tools before a model reads them."""

import re
import unicodedata
from typing import Any

from opposable.domain.tools import MAX_DESCRIPTION_CHARACTERS, MAX_PARAMETER_DESCRIPTION_CHARACTERS

WORD_JOINER = "\u2060"
"""A character without width. Inserted into a marker of a model's chat template, it makes the marker plain text."""

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Co", "Cs"}
_MODEL_MARKER_PATTERN = re.compile(
    r"<[|｜][^<>\n]{1,64}[|｜]>|</?s>|\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]|<</?SYS>>"
    r"|</?(?:tool_calls?|tool_response|tools|function_calls?|function|invoke|parameter|think|thinking|arg_key|arg_value)"
    r"\b|<(?:start|end)_of_\w{1,20}>|<(?:system|important|instructions?)>",
    re.IGNORECASE,
)
_TEXT_KEYS = ("description", "title", "$comment")
_DATA_KEYS = ("enum", "const", "default", "examples", "required", "dependentRequired")
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas")
"""Keywords whose value is an object with a name for each schema."""


def sanitize_text(text: str, max_characters: int = MAX_DESCRIPTION_CHARACTERS) -> str:
    """Remove invisible characters, break the markers of chat templates, and truncate a server's text."""
    read_text = text[: max_characters * 10]  # a server may send megabytes of text or of invisible characters
    visible = "".join(c for c in read_text if c in "\n\t" or unicodedata.category(c) not in _HIDDEN_CATEGORIES)
    sanitized = _MODEL_MARKER_PATTERN.sub(lambda match: f"{match[0][0]}{WORD_JOINER}{match[0][1:]}", visible).strip()
    return sanitized if len(sanitized) <= max_characters else f"{sanitized[:max_characters].rstrip()}…"


def sanitize_schema(node: Any) -> Any:
    """Sanitize the descriptions and titles of a schema. Keywords that validate values keep their meaning.

    `$schema` is left out, so a tuple of draft-07 (`items` with a list) becomes one of 2020-12 (`prefixItems`).
    """
    if isinstance(node, list):
        return [sanitize_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("items"), list):
        others = {key: value for key, value in node.items() if key != "additionalItems"}
        node = {**others, "prefixItems": node["items"], "items": node.get("additionalItems", True)}
    return {key: _sanitize_value(key, value) for key, value in node.items() if key != "$schema"}


def _sanitize_value(key: str, value: Any) -> Any:
    if key in _NAMED_SCHEMAS and isinstance(value, dict):
        return {name: sanitize_schema(inner) for name, inner in value.items()}
    if key in _TEXT_KEYS and isinstance(value, str):
        return sanitize_text(value, MAX_PARAMETER_DESCRIPTION_CHARACTERS)
    return value if key in _DATA_KEYS else sanitize_schema(value)
