"""A document's schemas as plain JSON Schema that stands alone: references put in place, OpenAPI's own words left out."""

import re
from typing import Any

from opposable.tools.http.openapi.document import Document, is_small
from opposable.tools.http.request_body import FILE_SCHEMA

INLINED = 400
"""Nodes put in place for one tool before references are kept as `$defs`."""
MOST_NODES = 20_000
MOST_VALUES = 5_000
"""Nodes of a default, a constant or an enumeration; larger ones are left out."""
DESCRIPTION = 300
_PLAIN = frozenset(
    (
        *("const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "dependentRequired"),
    )
)
_ONE = frozenset({"items", "not", "contains", "propertyNames", "if", "then", "else"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"patternProperties", "dependentSchemas"})
_BINARY = frozenset({"binary", "byte"})


class TooLarge(Exception):
    """A schema has more nodes than a tool can be told of."""


class Schemas:
    """The schemas of one tool. `definitions` are those that recur, or came after the budget for inlining was spent."""

    def __init__(self, document: Document, where: str) -> None:
        self._document = document
        self._where = where
        self._inlined = 0
        self._nodes = 0
        self._wanted: dict[str, str] = {}  # reference -> name in $defs
        self.definitions: dict[str, Any] = {}

    def schema(self, node: Any, *, files: bool = False) -> dict[str, Any]:
        """One schema, whole. With `files`, binary strings become files. Raises: `TooLarge`."""
        told = self._told(node, (), inline=True, files=files)
        while pending := [one for one in self._wanted.items() if one[1] not in self.definitions]:
            for reference, name in pending:
                self.definitions[name] = self._target(reference, (), inline=False, files=files)
        return told

    def _told(self, node: Any, path: tuple[str, ...], *, inline: bool, files: bool) -> dict[str, Any]:
        self._nodes += 1
        if self._nodes > MOST_NODES or len(path) > 60:
            raise TooLarge
        if not isinstance(node, dict):
            return {} if node is not False else {"not": {}}
        if isinstance(node.get("$ref"), str):
            return self._referred(node, path, inline=inline, files=files)
        if files and node.get("type") == "string" and _is_file(node):
            return {**FILE_SCHEMA, **self._description(node)}
        told: dict[str, Any] = self._type(node) | self._description(node)
        for key, value in node.items():
            if key in _PLAIN and is_small(value, MOST_VALUES):
                told[key] = value
            elif key in _ONE:
                told[key] = self._told(value, path, inline=inline, files=files)
            elif key in _LISTS and isinstance(value, list):
                told[key] = [self._told(item, path, inline=inline, files=files) for item in value]
            elif key in _MAPS and isinstance(value, dict):
                told[key] = {name: self._told(one, path, inline=inline, files=files) for name, one in value.items()}
        told |= self._properties(node, path, inline=inline, files=files)
        if "default" in node and is_small(node["default"], MOST_VALUES):
            told["default"] = node["default"]
        return _bounds(told, node) if self._document.is_30 else told | _exclusive(node)

    def _properties(self, node: dict[str, Any], path: tuple[str, ...], *, inline: bool, files: bool) -> dict[str, Any]:
        told: dict[str, Any] = {}
        properties = node.get("properties")
        if isinstance(properties, dict):
            kept = {name: one for name, one in properties.items() if not self._read_only(one)}
            told["properties"] = {
                str(name): self._told(one, path, inline=inline, files=files) for name, one in kept.items()
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
            told["additionalProperties"] = self._told(more, path, inline=inline, files=files)
        return told

    def _read_only(self, node: Any) -> bool:
        return isinstance(node, dict) and node.get("readOnly") is True

    def _referred(self, node: dict[str, Any], path: tuple[str, ...], *, inline: bool, files: bool) -> dict[str, Any]:
        reference = node["$ref"]
        beside = self._description(node)
        try:
            self._document.at(reference)
        except LookupError as error:
            self._document.left_out.append((self._where, f"a schema {error}; any value is taken in its place"))
            return beside
        if inline and reference not in path and self._inlined < INLINED:
            before = self._nodes
            told = self._target(reference, path, inline=True, files=files)
            self._inlined += self._nodes - before
            return told | beside
        return {"$ref": f"#/$defs/{self._name(reference)}"} | beside

    def _target(self, reference: str, path: tuple[str, ...], *, inline: bool, files: bool) -> dict[str, Any]:
        return self._told(self._document.at(reference), (*path, reference), inline=inline, files=files)

    def _name(self, reference: str) -> str:
        if reference not in self._wanted:
            plain = re.sub(r"[^A-Za-z0-9_-]+", "_", reference.rpartition("/")[2]) or "schema"
            taken = set(self._wanted.values())
            name, count = plain, 1
            while name in taken:
                count += 1
                name = f"{plain}_{count}"
            self._wanted[reference] = name
        return self._wanted[reference]

    def _type(self, node: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = {}
        kind = node.get("type")
        nullable = self._document.is_30 and node.get("nullable") is True
        if isinstance(kind, str | list):
            kinds = [kind] if isinstance(kind, str) else list(kind)
            kinds += ["null"] if nullable and "null" not in kinds else []
            told["type"] = kinds[0] if len(kinds) == 1 else kinds
        values = node.get("enum")
        if isinstance(values, list) and values and is_small(values, MOST_VALUES):
            told["enum"] = [*values, None] if nullable and None not in values else values
        return told

    def _description(self, node: dict[str, Any]) -> dict[str, Any]:
        text = node.get("description")
        if not isinstance(text, str) or not text.strip():
            return {}
        plain = " ".join(text.split())
        return {"description": plain if len(plain) <= DESCRIPTION else plain[: DESCRIPTION - 1] + "…"}


def without_patterns(schema: Any) -> Any:
    """A schema without its regular expressions: for those that only other languages understand."""
    if isinstance(schema, list):
        return [without_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_patterns(one) for name, one in value.items()}
        if key == "properties"
        else without_patterns(value)
        for key, value in schema.items()
        if key == "properties" or (key not in ("pattern", "patternProperties"))
    }


def _is_file(node: dict[str, Any]) -> bool:
    return node.get("format") in _BINARY or "contentMediaType" in node or "contentEncoding" in node


def _exclusive(node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: node[key] for key in ("exclusiveMinimum", "exclusiveMaximum") if not isinstance(node.get(key, True), bool)
    }


def _bounds(told: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0 says `exclusiveMinimum: true` beside `minimum`; JSON Schema has the number there."""
    for side in ("inimum", "aximum"):
        if node.get(f"exclusiveM{side}") is True and f"m{side}" in told:
            told[f"exclusiveM{side}"] = told.pop(f"m{side}")
    return told
