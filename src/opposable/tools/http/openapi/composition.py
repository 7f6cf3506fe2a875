"""What the parts of a schema, composed by `$ref` and `allOf`, say together."""

from collections.abc import Iterable, Mapping
from typing import Any

FURTHER_PROPERTIES_KEYWORDS = ("additionalProperties", "unevaluatedProperties")


def get_read_only_names(parts: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the properties that only responses have."""
    properties = [part["properties"] for part in parts if isinstance(part.get("properties"), dict)]
    return frozenset(
        name
        for group in properties
        for name, inner in group.items()
        if isinstance(inner, dict) and inner.get("readOnly") is True
    )


def is_closed(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a part refuses further properties."""
    return any(part.get(key) is False for part in parts for key in FURTHER_PROPERTIES_KEYWORDS)
