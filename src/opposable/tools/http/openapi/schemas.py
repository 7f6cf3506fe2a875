"""Converts a document's schemas to self-contained JSON Schema, with references inlined or moved to `$defs`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from opposable.domain.json_text import dump_json
from opposable.domain.parameter_names import choose_free_name
from opposable.domain.text_normalization import shorten_text, unwrap_lines
from opposable.domain.tools import MAX_PARAMETER_DESCRIPTION_CHARACTERS
from opposable.tools.http.openapi.discriminators import get_discriminator_values, select_values
from opposable.tools.http.openapi.document import OpenApiDocument, get_map, is_small
from opposable.tools.http.parameter_styles import scalar_to_text
from opposable.tools.http.request_body import FILE_SCHEMA

MAX_INLINED_NODES = 400
"""Nodes that are inlined for one tool; further references refer to `$defs`."""
MAX_SCHEMA_NODES = 20_000
MAX_EXTENSIONS = 20
"""Schemas that extend one with a discriminator, of which one is chosen. With more, the schema stays as it is."""
MAX_EXTENDED_NODES = 300
"""Nodes of a tool's schemas in which such a choice is made. With more, they are converted without it."""
MAX_REFERENCE_DEPTH = 60
MAX_EXAMPLES, MAX_EXAMPLE_NODES, MAX_EXAMPLE_CHARACTERS = 3, 20, 200
"""The examples of a schema that its description has. Larger ones are left out."""
MAX_VALUE_NODES = 5_000
"""Nodes of a default, a constant or an enumeration. Larger ones are left out."""
_COPIED_KEYWORDS = frozenset(
    (
        *("const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "dependentRequired"),
    )
)
_SUBSCHEMA_KEYWORDS = frozenset({"items", "not", "contains", "propertyNames", "if", "then", "else"})
_SUBSCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SUBSCHEMA_MAP_KEYWORDS = frozenset({"patternProperties", "dependentSchemas"})
_COMPOSITION_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf"})
"""A nullable schema with one of them still says `nullable`: it may have no type that null could be added to."""
_FURTHER_PROPERTIES_KEYWORDS = ("additionalProperties", "unevaluatedProperties")
_BINARY_FORMATS = frozenset({"binary", "byte"})


class SchemaTooLarge(Exception):
    """A schema has more nodes than `MAX_SCHEMA_NODES` or `MAX_EXTENDED_NODES`, or is nested too deeply."""


class _Target(NamedTuple):
    """A referenced schema and the way it is converted: as a part or an alternative (see `_Context`)."""

    reference: str
    read_only: frozenset[str] | None
    is_alternative: bool


@dataclass(frozen=True, slots=True)
class _Context:
    """How a node is converted.

    `inline` says whether references are inlined, `convert_files` whether binary strings become files.
    `path` holds the references that lead to the node. For a part of an `allOf`, `read_only` holds the names of
    read-only properties in all parts; None for a whole schema. `is_alternative` says whether a discriminator selects
    the node, so that the schemas that extend it are other alternatives.
    """

    inline: bool
    convert_files: bool
    path: tuple[_Target, ...] = ()
    read_only: frozenset[str] | None = None
    is_alternative: bool = False


class SchemaConverter:
    """Converts the schemas of one tool.

    `definitions` are the schemas that are not inlined: recursive ones, and those after `MAX_INLINED_NODES`.
    With `extensions`, a schema with a discriminator becomes a choice of the schemas that extend it.
    """

    def __init__(self, document: OpenApiDocument, location: str, *, extensions: bool = True) -> None:
        self._document = document
        self._location = location
        self._extensions = extensions
        self._extended: set[str] = set()
        self._inlined_nodes = 0
        self._node_count = 0
        self._definition_names: dict[_Target, str] = {}
        self.definitions: dict[str, Any] = {}

    def convert(self, node: Any, *, convert_files: bool = False) -> dict[str, Any]:
        """Convert one schema. With `convert_files`, binary strings become files. Raises: `SchemaTooLarge`."""
        converted = self._convert_node(node, _Context(inline=True, convert_files=convert_files))
        while pending := [item for item in self._definition_names.items() if item[1] not in self.definitions]:
            for target, name in pending:
                context = _Context(inline=False, convert_files=convert_files)
                self.definitions[name] = self._convert_target(target, context)
        return converted

    def _convert_node(self, node: Any, context: _Context) -> dict[str, Any]:
        self._node_count += 1
        max_nodes = MAX_EXTENDED_NODES if self._extended else MAX_SCHEMA_NODES
        if self._node_count > max_nodes or len(context.path) > MAX_REFERENCE_DEPTH:
            self._document.unextended_references |= self._extended
            raise SchemaTooLarge
        if not isinstance(node, dict):
            return {} if node is not False else {"not": {}}
        if isinstance(node.get("$ref"), str):
            return self._convert_reference(node, context)
        is_text = context.convert_files and node.get("type") == "string"
        if is_text and (
            node.get("format") in _BINARY_FORMATS or "contentMediaType" in node or "contentEncoding" in node
        ):
            return {**FILE_SCHEMA, **self._convert_description(node)}
        converted: dict[str, Any] = self._convert_type(node) | self._convert_description(node)
        converted |= {
            key: value for key, value in node.items() if key in _COPIED_KEYWORDS and is_small(value, MAX_VALUE_NODES)
        }
        converted |= self._convert_subschemas(node, context)
        if "default" in node and is_small(node["default"], MAX_VALUE_NODES):
            converted["default"] = node["default"]
        for side in ("inimum", "aximum"):  # a number, and in OpenAPI 3.0 whether the other bound is exclusive
            bound = node.get(f"exclusiveM{side}")
            if not self._document.is_openapi_30 and bound is not None and not isinstance(bound, bool):
                converted[f"exclusiveM{side}"] = bound
            if self._document.is_openapi_30 and bound is True and f"m{side}" in converted:
                converted[f"exclusiveM{side}"] = converted.pop(f"m{side}")
        return converted

    def _convert_subschemas(self, node: dict[str, Any], context: _Context) -> dict[str, Any]:
        is_part = context.read_only is not None
        parts = [] if is_part else self._document.collect_parts(node)
        read_only = _get_read_only_names(parts) if context.read_only is None else context.read_only
        is_composed = is_part or ("allOf" in node and not self._is_wrapped_reference(node, context))
        context = replace(context, read_only=None, is_alternative=False)
        converted: dict[str, Any] = {}
        for key, value in node.items():
            if key in _SUBSCHEMA_KEYWORDS:
                converted[key] = self._convert_node(value, context)
            elif key in _SUBSCHEMA_LIST_KEYWORDS and isinstance(value, list):
                # With a discriminator, the server chooses; schemas that overlap must not refuse a right value.
                is_choice = key == "oneOf" and "discriminator" in node and "anyOf" not in node
                item_context = replace(context, read_only=read_only) if key == "allOf" and is_composed else context
                converted["anyOf" if is_choice else key] = (
                    self._convert_alternatives(node, value, context)
                    if key in ("anyOf", "oneOf") and "discriminator" in node
                    else [self._convert_node(item, item_context) for item in value]
                )
            elif key in _SUBSCHEMA_MAP_KEYWORDS and isinstance(value, dict):
                converted[key] = {name: self._convert_node(inner, context) for name, inner in value.items()}
        converted |= self._convert_properties(node, context, read_only)
        for key in _FURTHER_PROPERTIES_KEYWORDS:
            further = node.get(key)
            if isinstance(further, dict):
                converted[key] = self._convert_node(further, context)
            elif further is True or (further is False and not is_composed):  # it would refuse those of the other parts
                converted[key] = further
        if is_composed and any(part.get(key) is False for part in parts for key in _FURTHER_PROPERTIES_KEYWORDS):
            converted.setdefault("unevaluatedProperties", False)
        return converted

    def _is_wrapped_reference(self, node: dict[str, Any], context: _Context) -> bool:
        """Return whether an `allOf` is only a reference with a description, as OpenAPI 3.0 writes it."""
        target = self._document.resolve_reference(context.path[-1].reference) if context.path else None
        is_single = isinstance(node["allOf"], list) and len(node["allOf"]) == 1
        return is_single and node is not target and {"properties", *_FURTHER_PROPERTIES_KEYWORDS}.isdisjoint(node)

    def _convert_alternatives(self, node: dict[str, Any], items: list[Any], context: _Context) -> list[dict[str, Any]]:
        """Convert the schemas that a discriminator selects, each with its values."""
        context = replace(context, is_alternative=True)
        references = [
            item["$ref"] if isinstance(item, dict) and isinstance(item.get("$ref"), str) else "" for item in items
        ]
        values = get_discriminator_values(self._document, node, references)
        name = str(get_map(node, "discriminator").get("propertyName", ""))
        alternatives = []
        for item, reference in zip(items, references, strict=True):
            alternative = self._convert_node(item, context)
            properties = alternative.get("properties", {})
            own = properties.get(name, {})
            if (allowed := select_values(self._document, item, name, values[reference])) and "const" not in own:
                alternative["properties"] = {**properties, name: own | {"enum": allowed}}
            alternatives.append(alternative)
        return alternatives

    def _convert_properties(self, node: dict[str, Any], context: _Context, read_only: frozenset[str]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        properties = node.get("properties")
        if isinstance(properties, dict):
            hidden = _get_read_only_names([node])
            converted["properties"] = {
                str(name): self._convert_node(inner, context)
                for name, inner in properties.items()
                if name not in hidden
            }
        names = node.get("required")
        if isinstance(names, list) and (
            required := [name for name in names if isinstance(name, str) and name not in read_only]
        ):
            converted["required"] = required
        return converted

    def _convert_reference(self, node: dict[str, Any], context: _Context) -> dict[str, Any]:
        reference = node["$ref"]
        siblings = self._convert_siblings(node)
        try:
            self._document.resolve_reference(reference)
        except LookupError as error:
            self._document.skipped_parts.append((self._location, f"a schema {error}; any value is taken in its place"))
            return siblings
        target = _Target(reference, context.read_only, context.is_alternative)
        if context.inline and target not in context.path and self._inlined_nodes < MAX_INLINED_NODES:
            before = self._node_count
            converted = self._convert_target(target, context)
            self._inlined_nodes += self._node_count - before
            return converted | siblings
        return {"$ref": f"#/$defs/{self._get_definition_name(target)}"} | siblings

    def _convert_target(self, target: _Target, context: _Context) -> dict[str, Any]:
        node = self._document.resolve_reference(target.reference)
        context = replace(
            context, path=(*context.path, target), read_only=target.read_only, is_alternative=target.is_alternative
        )
        is_whole = target.read_only is None and not target.is_alternative and not context.convert_files
        is_base = self._extensions and is_whole and isinstance(node, dict) and get_map(node, "discriminator")
        references = self._get_choices(node, target.reference) if is_base else []
        if not references:
            return self._convert_node(node, context)
        self._extended.add(target.reference)
        items = [{"$ref": reference} for reference in references]
        return {"anyOf": self._convert_alternatives(node, items, context)} | self._convert_siblings(node)

    def _get_choices(self, node: dict[str, Any], reference: str) -> list[str]:
        """Return references to the few schemas that a discriminator selects; none if it selects only its own."""
        if not {"anyOf", "oneOf"}.isdisjoint(node) or reference in self._document.unextended_references:
            return []
        extensions = self._document.get_extensions(node)
        if max(len(extensions), len(get_map(get_map(node, "discriminator"), "mapping"))) > MAX_EXTENSIONS:
            return []
        references = list(get_discriminator_values(self._document, node, extensions))
        return references if references != [reference] and len(references) <= MAX_EXTENSIONS else []

    def _get_definition_name(self, target: _Target) -> str:
        if target not in self._definition_names:
            base_name = re.sub(r"[^A-Za-z0-9_-]+", "_", target.reference.rpartition("/")[2]) or "schema"
            self._definition_names[target] = choose_free_name(base_name, self._definition_names.values())
        return self._definition_names[target]

    def _convert_type(self, node: dict[str, Any]) -> dict[str, Any]:
        converted: dict[str, Any] = {}
        json_type = node.get("type")
        types = [json_type] if isinstance(json_type, str) else list(json_type) if isinstance(json_type, list) else []
        nullable = node.get("nullable") is True  # OpenAPI 3.0, and documents that were converted from it
        if types:
            types += ["null"] if nullable and "null" not in types else []
            converted["type"] = types[0] if len(types) == 1 else types
        values = node.get("enum")
        if isinstance(values, list) and values and is_small(values, MAX_VALUE_NODES):
            if types and {"string", "null"}.issuperset(types):  # YAML reads a choice such as 1.1 as a number
                values = [scalar_to_text(item) if isinstance(item, int | float) else item for item in values]
            converted["enum"] = [*values, None] if nullable and None not in values else values
        if nullable and not _COMPOSITION_KEYWORDS.isdisjoint(node):
            converted["nullable"] = True
        return converted

    def _convert_siblings(self, node: dict[str, Any]) -> dict[str, Any]:
        """Convert the keywords that apply in addition to a reference or a choice."""
        return self._convert_description(node) | ({"nullable": True} if node.get("nullable") is True else {})

    def _convert_description(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a schema or parameter with its examples, which some servers reject as a keyword."""
        text = node.get("description")
        text = unwrap_lines(text) if isinstance(text, str) else ""
        examples = [example for example in map(_example_to_text, get_examples(node)) if example not in text]
        examples = [example for example in examples if len(example) <= MAX_EXAMPLE_CHARACTERS]
        texts = [text, f"Example: {', '.join(examples)}" if examples else ""]
        description = "\n".join(filter(None, texts))
        return {"description": shorten_text(description, MAX_PARAMETER_DESCRIPTION_CHARACTERS)} if description else {}


def get_examples(node: Mapping[str, Any]) -> list[Any]:
    """Return the first small examples of a schema, parameter or body: one value, a list, or named values."""
    examples = node.get("examples")
    if isinstance(examples, dict):
        examples = [named["value"] for named in examples.values() if isinstance(named, dict) and "value" in named]
    examples = [node["example"]] if "example" in node else examples if isinstance(examples, list) else []
    return [value for value in examples if value is not None and is_small(value, MAX_EXAMPLE_NODES)][:MAX_EXAMPLES]


def _example_to_text(example: Any) -> str:
    return example if isinstance(example, str) else dump_json(example, default=str).decode()


def _get_read_only_names(parts: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the properties that only responses have."""
    properties = [(name, inner) for part in parts for name, inner in get_map(part, "properties").items()]
    return frozenset(name for name, inner in properties if isinstance(inner, dict) and inner.get("readOnly") is True)
