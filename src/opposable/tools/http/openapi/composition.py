"""The parts of a schema that a document composes by `$ref` and `allOf`."""

from contextlib import suppress
from typing import Any

from opposable.tools.http.openapi.document import OpenApiDocument

FURTHER_PROPERTIES_KEYWORDS = ("additionalProperties", "unevaluatedProperties")


def collect_parts(document: OpenApiDocument, node: Any) -> list[dict[str, Any]]:
    """Return a schema with all those that apply to the same value by `$ref` and `allOf`, each once."""
    parts: dict[int, dict[str, Any]] = {}
    pending = [node]
    while pending:
        part = pending.pop()
        if not isinstance(part, dict) or id(part) in parts:
            continue
        parts[id(part)] = part
        pending += part["allOf"] if isinstance(part.get("allOf"), list) else []
        if isinstance(part.get("$ref"), str):
            with suppress(LookupError):  # reported where the reference is converted
                pending.append(document.resolve_reference(part["$ref"]))
    return list(parts.values())


def get_read_only_names(parts: list[dict[str, Any]]) -> frozenset[str]:
    """Return the names of the properties that only responses have."""
    properties = [part["properties"] for part in parts if isinstance(part.get("properties"), dict)]
    return frozenset(
        name
        for group in properties
        for name, inner in group.items()
        if isinstance(inner, dict) and inner.get("readOnly") is True
    )


def is_closed(parts: list[dict[str, Any]]) -> bool:
    """Return whether a part refuses further properties."""
    return any(part.get(key) is False for part in parts for key in FURTHER_PROPERTIES_KEYWORDS)
