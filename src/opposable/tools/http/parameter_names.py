"""Renames the parameters of an endpoint whose names providers refuse."""

from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.parameter_names import choose_names, rename_properties
from opposable.domain.specs import EndpointConfig
from opposable.tools.http.request import get_placement
from opposable.tools.http.url_template import rename_in_template

_NAMING_KEYWORDS = frozenset(
    {"$dynamicRef", "$ref", "allOf", "anyOf", "dependencies", "dependentRequired", "dependentSchemas", "if", "not"}
    | {"oneOf", "propertyNames"}
)
"""Keywords, next to `properties` and `required`, that may name parameters. A schema with one is not changed."""


def rename_parameters(
    endpoint: EndpointConfig, schema: dict[str, Any]
) -> tuple[EndpointConfig, dict[str, Any], dict[str, str]]:
    """Return the endpoint and its schema with accepted names, and the new names by the original ones.

    The request does not change: the placement of a renamed parameter has its original name. Without a name that must
    change, these are the same objects, and {}.
    """
    properties = schema.get("properties", {})
    names = choose_names(properties)
    if not names or not _NAMING_KEYWORDS.isdisjoint(schema) or b'"#/properties/' in dump_json(schema, default=str):
        return endpoint, schema, {}
    places = {name: place for name, place in endpoint.places.items() if name not in names}
    for original, name in names.items():
        place = get_placement(endpoint, original)
        places[name] = place.model_copy(update={"name": place.name or original})
    renamed_endpoint = endpoint.model_copy(
        update={
            "url_template": rename_in_template(endpoint.url_template, names),
            "places": places,
            "body_param": names.get(endpoint.body_param, endpoint.body_param),
        }
    )
    return renamed_endpoint, rename_properties(schema, names), names
