"""The values of a discriminator, and the schemas that they select."""

from collections.abc import Iterable, Mapping
from typing import Any

from opposable.domain.json_pointer import unescape_step
from opposable.tools.http.openapi.document import SCHEMAS_REFERENCE, OpenApiDocument, get_map, to_schema_reference


def get_discriminator_values(
    document: OpenApiDocument, node: Mapping[str, Any], references: Iterable[str]
) -> dict[str, list[str]]:
    """Return the values that select each schema, by its reference: from the mapping, else the schema's name.

    The list is empty for a schema that any value may select. `node` has the discriminator. `references` are the schemas
    to choose from, in addition to those of the mapping.
    """
    discriminator = get_map(node, "discriminator")
    values: dict[str, list[str]] = {}
    for value, target in get_map(discriminator, "mapping").items():
        values.setdefault(_to_reference(document, str(target)), []).append(str(value))
    for reference in references:
        values.setdefault(reference, _get_implicit_values(document, reference))
    default = _to_reference(document, str(discriminator.get("defaultMapping")))
    return {reference: [] if reference == default else texts for reference, texts in values.items()}


def select_values(document: OpenApiDocument, node: Any, property_name: str, values: list[str]) -> list[str]:
    """Return those of the values that a schema allows for a property."""
    for part in document.collect_parts(node):
        for schema in document.collect_parts(get_map(part, "properties").get(property_name)):
            choices = [schema["const"]] if "const" in schema else schema.get("enum")
            is_text = "string" in schema.get("type", "string")
            values = [value for value in values if is_text and (not isinstance(choices, list) or value in choices)]
    return values


def _get_implicit_values(document: OpenApiDocument, reference: str) -> list[str]:
    """Return the name of a component schema, unless it is a choice of schemas, which have their own names."""
    name = unescape_step(reference.removeprefix(SCHEMAS_REFERENCE))
    schema = get_map(document.get_components("schemas"), name)
    return [name] if schema and {"anyOf", "oneOf"}.isdisjoint(schema) else []


def _to_reference(document: OpenApiDocument, target: str) -> str:
    """Return the reference to a target of a mapping, which may be the name of a component schema."""
    return to_schema_reference(target) if target in document.get_components("schemas") else target
