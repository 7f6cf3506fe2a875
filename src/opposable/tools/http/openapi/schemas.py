"""A document's schemas as plain JSON Schema that stands alone: references put in place, OpenAPI's own words left out."""

import re
from typing import Any

from opposable.tools.http.openapi.document import OpenApiDocument, is_small
from opposable.tools.http.request_body import FILE_SCHEMA

MAX_INLINED_NODES = 400
"""Nodes put in place for one tool before references are kept as `$defs`."""
MAX_SCHEMA_NODES = 20_000
MAX_VALUE_NODES = 5_000
"""Nodes of a default, a constant or an enumeration; larger ones are left out."""
MAX_DESCRIPTION_CHARACTERS = 300
_COPIED_KEYWORDS = frozenset(
    (
        *("const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "dependentRequired"),
    )
)
_SUBSCHEMA_KEYWORDS = frozenset({"items", "not", "contains", "propertyNames", "if", "then", "else"})
_SUBSCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SUBSCHEMA_MAP_KEYWORDS = frozenset({"patternProperties", "dependentSchemas"})
_BINARY_FORMATS = frozenset({"binary", "byte"})


class SchemaTooLarge(Exception):
    """A schema has more nodes than a tool can be told of."""


class SchemaConverter:
    """The schemas of one tool. `definitions` are those that recur, or came after the budget for inlining was spent."""

    def __init__(self, document: OpenApiDocument, location: str) -> None:
        self._document = document
        self._location = location
        self._inlined_nodes = 0
        self._node_count = 0
        self._definition_names: dict[str, str] = {}  # reference -> name in $defs
        self.definitions: dict[str, Any] = {}

    def convert(self, node: Any, *, convert_files: bool = False) -> dict[str, Any]:
        """One schema, whole. With `files`, binary strings become files. Raises: `TooLarge`."""
        told = self._convert_node(node, (), inline=True, convert_files=convert_files)
        while pending := [one for one in self._definition_names.items() if one[1] not in self.definitions]:
            for reference, name in pending:
                self.definitions[name] = self._convert_target(reference, (), inline=False, convert_files=convert_files)
        return told

    def _convert_node(
        self, node: Any, reference_path: tuple[str, ...], *, inline: bool, convert_files: bool
    ) -> dict[str, Any]:
        self._node_count += 1
        if self._node_count > MAX_SCHEMA_NODES or len(reference_path) > 60:
            raise SchemaTooLarge
        if not isinstance(node, dict):
            return {} if node is not False else {"not": {}}
        if isinstance(node.get("$ref"), str):
            return self._convert_reference(node, reference_path, inline=inline, convert_files=convert_files)
        if convert_files and node.get("type") == "string" and _is_file(node):
            return {**FILE_SCHEMA, **self._convert_description(node)}
        told: dict[str, Any] = self._convert_type(node) | self._convert_description(node)
        for key, value in node.items():
            if key in _COPIED_KEYWORDS and is_small(value, MAX_VALUE_NODES):
                told[key] = value
            elif key in _SUBSCHEMA_KEYWORDS:
                told[key] = self._convert_node(value, reference_path, inline=inline, convert_files=convert_files)
            elif key in _SUBSCHEMA_LIST_KEYWORDS and isinstance(value, list):
                told[key] = [
                    self._convert_node(item, reference_path, inline=inline, convert_files=convert_files)
                    for item in value
                ]
            elif key in _SUBSCHEMA_MAP_KEYWORDS and isinstance(value, dict):
                told[key] = {
                    name: self._convert_node(one, reference_path, inline=inline, convert_files=convert_files)
                    for name, one in value.items()
                }
        told |= self._convert_properties(node, reference_path, inline=inline, convert_files=convert_files)
        if "default" in node and is_small(node["default"], MAX_VALUE_NODES):
            told["default"] = node["default"]
        return (
            _convert_exclusive_bounds(told, node)
            if self._document.is_openapi_30
            else told | _get_exclusive_bounds(node)
        )

    def _convert_properties(
        self, node: dict[str, Any], reference_path: tuple[str, ...], *, inline: bool, convert_files: bool
    ) -> dict[str, Any]:
        told: dict[str, Any] = {}
        properties = node.get("properties")
        if isinstance(properties, dict):
            kept = {name: one for name, one in properties.items() if not self._is_read_only(one)}
            told["properties"] = {
                str(name): self._convert_node(one, reference_path, inline=inline, convert_files=convert_files)
                for name, one in kept.items()
            }
            dropped = set(properties) - set(kept)
            required = [name for name in node.get("required", []) if isinstance(name, str) and name not in dropped]
        else:
            required = (
                [name for name in node.get("required", []) if isinstance(name, str)]
                if isinstance(node.get("required"), list)
                else []
            )
        if required:
            told["required"] = required
        more = node.get("additionalProperties")
        if isinstance(more, bool):
            told["additionalProperties"] = more
        elif isinstance(more, dict):
            told["additionalProperties"] = self._convert_node(
                more, reference_path, inline=inline, convert_files=convert_files
            )
        return told

    def _is_read_only(self, node: Any) -> bool:
        return isinstance(node, dict) and node.get("readOnly") is True

    def _convert_reference(
        self, node: dict[str, Any], reference_path: tuple[str, ...], *, inline: bool, convert_files: bool
    ) -> dict[str, Any]:
        reference = node["$ref"]
        beside = self._convert_description(node)
        try:
            self._document.resolve_reference(reference)
        except LookupError as error:
            self._document.skipped_parts.append((self._location, f"a schema {error}; any value is taken in its place"))
            return beside
        if inline and reference not in reference_path and self._inlined_nodes < MAX_INLINED_NODES:
            before = self._node_count
            told = self._convert_target(reference, reference_path, inline=True, convert_files=convert_files)
            self._inlined_nodes += self._node_count - before
            return told | beside
        return {"$ref": f"#/$defs/{self._get_definition_name(reference)}"} | beside

    def _convert_target(
        self, reference: str, reference_path: tuple[str, ...], *, inline: bool, convert_files: bool
    ) -> dict[str, Any]:
        return self._convert_node(
            self._document.resolve_reference(reference),
            (*reference_path, reference),
            inline=inline,
            convert_files=convert_files,
        )

    def _get_definition_name(self, reference: str) -> str:
        if reference not in self._definition_names:
            plain = re.sub(r"[^A-Za-z0-9_-]+", "_", reference.rpartition("/")[2]) or "schema"
            taken = set(self._definition_names.values())
            name, count = plain, 1
            while name in taken:
                count += 1
                name = f"{plain}_{count}"
            self._definition_names[reference] = name
        return self._definition_names[reference]

    def _convert_type(self, node: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = {}
        kind = node.get("type")
        nullable = self._document.is_openapi_30 and node.get("nullable") is True
        if isinstance(kind, str | list):
            kinds = [kind] if isinstance(kind, str) else list(kind)
            kinds += ["null"] if nullable and "null" not in kinds else []
            told["type"] = kinds[0] if len(kinds) == 1 else kinds
        values = node.get("enum")
        if isinstance(values, list) and values and is_small(values, MAX_VALUE_NODES):
            told["enum"] = [*values, None] if nullable and None not in values else values
        return told

    def _convert_description(self, node: dict[str, Any]) -> dict[str, Any]:
        text = node.get("description")
        if not isinstance(text, str) or not text.strip():
            return {}
        plain = " ".join(text.split())
        return {
            "description": plain
            if len(plain) <= MAX_DESCRIPTION_CHARACTERS
            else plain[: MAX_DESCRIPTION_CHARACTERS - 1] + "…"
        }


def remove_patterns(schema: Any) -> Any:
    """A schema without its regular expressions: for those that only other languages understand."""
    if isinstance(schema, list):
        return [remove_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: remove_patterns(one) for name, one in value.items()}
        if key == "properties"
        else remove_patterns(value)
        for key, value in schema.items()
        if key == "properties" or (key not in ("pattern", "patternProperties"))
    }


def _is_file(node: dict[str, Any]) -> bool:
    return node.get("format") in _BINARY_FORMATS or "contentMediaType" in node or "contentEncoding" in node


def _get_exclusive_bounds(node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: node[key] for key in ("exclusiveMinimum", "exclusiveMaximum") if not isinstance(node.get(key, True), bool)
    }


def _convert_exclusive_bounds(converted: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0 says `exclusiveMinimum: true` beside `minimum`; JSON Schema has the number there."""
    for side in ("inimum", "aximum"):
        if node.get(f"exclusiveM{side}") is True and f"m{side}" in converted:
            converted[f"exclusiveM{side}"] = converted.pop(f"m{side}")
    return converted
