"""Renames the parameters of an endpoint whose names providers refuse."""

import itertools
import re
from collections.abc import Iterable
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.specs import EndpointConfig, ParameterPlacement
from opposable.tools.http.request import get_default_placement

_ACCEPTED_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The names of parameters that every provider accepts. Anthropic's API refuses each request with another one."""
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
    places = {names.get(name, name): place for name, place in endpoint.places.items()}
    for original, name in names.items():
        place = places.get(name, get_default_placement(endpoint))
        place = place if isinstance(place, ParameterPlacement) else ParameterPlacement(place=place)
        places[name] = place.model_copy(update={"name": place.name or original})
    renamed_endpoint = endpoint.model_copy(
        update={
            "url_template": re.sub(
                r"\{([^{}]+)\}", lambda match: f"{{{names.get(match[1], match[1])}}}", endpoint.url_template
            ),
            "places": places,
            "body_param": names.get(endpoint.body_param, endpoint.body_param),
        }
    )
    described = {
        names.get(name, name): _add_original_name(name, parameter) if name in names else parameter
        for name, parameter in properties.items()
    }
    renamed_schema = {**schema, "properties": described}
    if "required" in schema:
        renamed_schema["required"] = [names.get(name, name) for name in schema["required"]]
    return renamed_endpoint, renamed_schema, names


def choose_names(parameters: Iterable[str]) -> dict[str, str]:
    """Return a readable new name for each parameter whose name is not accepted."""
    parameters = list(parameters)
    taken = {name for name in parameters if _ACCEPTED_NAME_PATTERN.fullmatch(name)}
    names: dict[str, str] = {}
    for number, name in enumerate(parameters, 1):
        if _ACCEPTED_NAME_PATTERN.fullmatch(name):
            continue
        readable = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name).strip("_")[:60] or f"parameter_{number}"
        numbered = (f"{readable}_{count}" for count in itertools.count(2))
        names[name] = next(free for free in itertools.chain([readable], numbered) if free not in taken)
        taken.add(names[name])
    return names


def _add_original_name(name: str, parameter: Any) -> Any:
    """Return a parameter's schema whose description begins with its original name."""
    if not isinstance(parameter, dict):
        return parameter
    description = parameter.get("description")
    return {**parameter, "description": f"{name}: {description}" if description else name}
