"""Imports an OpenAPI document: specs of HTTP tools, and a report of the parts that cannot be used."""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.parameter_names import choose_free_name
from opposable.domain.specs import EndpointConfig, HttpToolSpec, ParameterPlacement, ResponseTransform
from opposable.domain.text_normalization import shorten_text, unwrap_lines
from opposable.domain.tools import MAX_DESCRIPTION_CHARACTERS
from opposable.tools.http.argument_validation import compile_argument_validator
from opposable.tools.http.openapi.document import OpenApiDocument, get_map, to_short_text
from opposable.tools.http.openapi.operation import OperationInputs
from opposable.tools.http.openapi.schemas import SchemaTooLarge
from opposable.tools.http.openapi.security import get_operation_auth
from opposable.tools.http.request import plan_endpoint
from opposable.tools.http.response import EVENT_STREAM, LINE_STREAMS
from opposable.tools.http.url_template import rename_in_template
from opposable.tools.json_schema_validation import compile_repaired
from opposable.tools.tool_names import hash_name

_METHODS = frozenset({"get", "put", "post", "delete", "patch", "head"})
_UNSUPPORTED_METHODS = ("options", "trace", "query", "additionalOperations")
_STREAMS = LINE_STREAMS | {EVENT_STREAM}
_PAGE_HEADERS = ("link",)


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """A part of a document that cannot be used."""

    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class OpenApiImportResult:
    """The specs of a document's operations, and the parts that were skipped."""

    specs: tuple[HttpToolSpec, ...]
    skipped_parts: tuple[SkippedPart, ...]


def specs_from_openapi(
    document: OpenApiDocument, *, prefix: str = "", server: str = "", include: Collection[str] = ()
) -> OpenApiImportResult:
    """Create a spec for each operation that can be called. The others are reported as skipped.

    Args:
        document: The document.
        prefix: Precedes each id (`prefix.operation`) and each secret's name.
        server: The server's URL, in place of the document's servers.
        include: Tags and operation ids to import (default: all).

    Raises:
        BadInput: No server is given or described, or the prefix is not valid.
    """
    if prefix and not re.fullmatch(r"[\w-]{1,40}", prefix):
        raise BadInput(f"{prefix!r} is not a valid prefix. Use at most 40 letters, digits, dashes and underscores.")
    specs: dict[str, HttpToolSpec] = {}
    for path, item in document.root["paths"].items():
        if not str(path).startswith("/"):  # it would continue the name of the server's host
            document.skipped_parts.append((str(path), "is not a path, which begins with /"))
            continue
        try:
            item = _drop_empty(document.resolve_node(item))
        except LookupError as error:
            document.skipped_parts.append((str(path), str(error)))
            continue
        for method, operation in item.items():
            if method not in _METHODS or not isinstance(operation, Mapping):
                continue
            labels = [operation.get("operationId"), *_get_tags(operation)]
            if include and not any(label in include for label in labels):
                continue
            location = f"{method.upper()} {path}"
            try:
                spec = _create_spec(document, location, item, _drop_empty(operation), specs, prefix, server)
            except (LookupError, SchemaTooLarge, RecursionError, ToolRegistrationError, TypeError, ValueError) as error:
                document.skipped_parts.append((location, f"no tool: {_describe_error(error)}"))
                continue
            specs[spec.tool_id] = spec
        document.skipped_parts += [
            (f"{name.upper()} {path}", "this method is not called") for name in _UNSUPPORTED_METHODS if name in item
        ]
    if document.root.get("webhooks"):
        document.skipped_parts.append(("webhooks", "webhooks are requests to you, not from you"))
    skipped = dict.fromkeys(SkippedPart(location, reason) for location, reason in document.skipped_parts)
    return OpenApiImportResult(tuple(specs.values()), tuple(skipped))


def _drop_empty(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that are null: keys of YAML without a value."""
    return {name: value for name, value in node.items() if value is not None}


def _get_tags(operation: Mapping[str, Any]) -> tuple[str, ...]:
    tags = operation.get("tags")
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def _to_single_line(value: Any) -> str:
    """Return a text of the document on one line; "" for any other value."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _describe_error(error: Exception) -> str:
    if isinstance(error, SchemaTooLarge | RecursionError):
        return "its schemas are too large"
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_input=False)
        )
    return str(error).splitlines()[0]


def _create_spec(
    document: OpenApiDocument,
    location: str,
    item: Mapping[str, Any],
    operation: Mapping[str, Any],
    taken_ids: Collection[str],
    prefix: str,
    server: str,
) -> HttpToolSpec:
    method, _, path = location.partition(" ")
    try:
        inputs = _collect_inputs(document, location, item, operation, extensions=True)
    except SchemaTooLarge:
        inputs = _collect_inputs(document, location, item, operation, extensions=False)
    url_path = rename_in_template(path, _get_path_names(inputs))
    server_url, *query = _get_server_url(document, item, operation, server).split("?", 1)
    authentication = get_operation_auth(document, operation, prefix)
    endpoint = EndpointConfig.model_validate(
        {
            "url_template": "?".join([f"{server_url.rstrip('/')}{url_path}", *query]),
            "method": method,
            "headers": dict(authentication.headers),
            "auth": authentication.auth,
            "places": _remove_default_places(inputs.places, method),
            **inputs.body,
        }
    )
    deprecated = operation.get("deprecated") is True
    tool_id = _choose_tool_id(operation, location, taken_ids, prefix)
    successes = _get_success_responses(document, operation)
    has_pages = any(str(name).lower() == "link" for node in successes for name in get_map(node, "headers"))
    spec = HttpToolSpec(
        tool_id=tool_id,
        display_name=_to_single_line(operation.get("summary"))[:200],
        description=_create_description(operation, item, location, deprecated=deprecated),
        tags=_get_tags(operation),
        version=to_short_text(get_map(document.root, "info").get("version", "1.0.0")),
        category=prefix or "general",
        mode="streamable" if any(_STREAMS & set(get_map(node, "content")) for node in successes) else "invokable",
        read_only=method in ("GET", "HEAD"),
        metadata={"operation": location, "deprecated": deprecated},
        endpoint=endpoint,
        parameters=_create_parameters_schema(tool_id, inputs),
        response_transform=ResponseTransform(headers=_PAGE_HEADERS if has_pages else ()),
    )
    plan_endpoint(tool_id, endpoint, tuple(spec.parameters["properties"]))
    return spec


def _collect_inputs(
    document: OpenApiDocument, location: str, item: Mapping[str, Any], operation: Mapping[str, Any], *, extensions: bool
) -> OperationInputs:
    """Convert an operation's parameters and body. Raises: `LookupError` if a required one is not supported."""
    method, _, path = location.partition(" ")
    inputs = OperationInputs(document, location, extensions=extensions)
    inputs.add_parameters(_get_parameters(document, item, operation))
    described = _get_path_names(inputs)
    for name in dict.fromkeys(re.findall(r"\{([^{}]+)\}", path)):
        if name not in described:
            inputs.add_parameter(name, {"type": "string"}, ParameterPlacement(place="path"), required=True)
            inputs.skip(f"parameter {name} is not described; it is taken as text")
    if "requestBody" in operation and method not in ("GET", "HEAD"):
        inputs.add_body(operation["requestBody"])
    elif "requestBody" in operation:
        inputs.skip(f"a {method} has no body; it is sent without one")
    return inputs


def _get_parameters(document: OpenApiDocument, item: Mapping[str, Any], operation: Mapping[str, Any]) -> list[Any]:
    """Return the parameters of an operation, with those of its path that it does not replace."""
    parameters: dict[tuple[Any, Any], Any] = {}
    for node in [*item.get("parameters", ()), *operation.get("parameters", ())]:
        parameter = document.resolve_node(node)
        parameters[parameter.get("name"), parameter.get("in")] = parameter
    return list(parameters.values())


def _get_path_names(inputs: OperationInputs) -> dict[str, str]:
    """Return the tool's names of the parameters of a path, by their names in the path."""
    return {place.name or name: name for name, place in inputs.places.items() if place.place == "path"}


def _remove_default_places(places: Mapping[str, ParameterPlacement], method: str) -> dict[str, Any]:
    """Return the placements that differ from the default."""
    default = ParameterPlacement(place="query" if method in ("GET", "HEAD", "DELETE") else "body")
    return {
        name: place.place if place == ParameterPlacement(place=place.place) else place
        for name, place in places.items()
        if place not in (default, ParameterPlacement(place="path"))
    }


def _get_server_url(
    document: OpenApiDocument, item: Mapping[str, Any], operation: Mapping[str, Any], server_url: str
) -> str:
    """Return a server's URL with the defaults of its variables, relative to the document's own URL."""
    if server_url:
        return server_url
    declared = (holder.get("servers") for holder in (operation, item, document.root))
    usable = (one[0] for one in declared if isinstance(one, list) and one and isinstance(one[0], Mapping))
    server = next(usable, {"url": "/"})
    url = _to_single_line(server.get("url", "/"))
    for name, variable in get_map(server, "variables").items():
        url = url.replace(
            f"{{{name}}}", to_short_text(variable.get("default", "")) if isinstance(variable, Mapping) else ""
        )
    url = urljoin(document.source_url, url) if document.source_url else url
    if not urlsplit(url).netloc:
        raise BadInput(f"The document's server is {url!r}, which has no host. Give the server's URL.")
    return url


def _create_parameters_schema(tool_id: str, inputs: OperationInputs) -> dict[str, Any]:
    """Return the tool's schema, without malformed keywords and patterns that do not compile."""
    schema: dict[str, Any] = {"type": "object", "properties": inputs.properties}
    schema |= {"required": inputs.required} if inputs.required else {}
    schema |= {"$defs": inputs.schemas.definitions} if inputs.schemas.definitions else {}
    try:
        compile_argument_validator(tool_id, schema)
    except ToolRegistrationError as error:
        try:
            compile_repaired(schema)
        except BadInput:
            raise error from None
        inputs.skip("malformed keywords of its schemas are left out, or patterns in another language of expressions")
    return schema


def _choose_tool_id(operation: Mapping[str, Any], location: str, taken_ids: Collection[str], prefix: str) -> str:
    """Return a free id: the operation's id, or its method and path."""
    operation_id = operation.get("operationId")
    text = operation_id if isinstance(operation_id, str) and operation_id.strip() else location.lower()
    tool_id = re.sub(r"[^\w.-]+", "_", text).strip("_.") or "operation"
    tool_id = f"{prefix}.{tool_id}" if prefix else tool_id
    if len(tool_id) > 100:
        tool_id = f"{tool_id[:91]}_{hash_name(tool_id)}"
    return choose_free_name(tool_id, taken_ids)


def _create_description(
    operation: Mapping[str, Any], item: Mapping[str, Any], location: str, *, deprecated: bool
) -> str:
    summary = _to_single_line(operation.get("summary")) or _to_single_line(item.get("summary"))
    texts = (unwrap_lines(one["description"]) for one in (operation, item) if isinstance(one.get("description"), str))
    text = next(filter(None, texts), "")
    starts_with_summary = text.lower().startswith(summary.lower().rstrip(".。"))
    summary = summary if summary.endswith((".", "。", "!", "！", "?", "？")) else f"{summary}."
    description = (text if starts_with_summary else f"{summary} {text}".strip()) or location
    description = shorten_text(description, MAX_DESCRIPTION_CHARACTERS)
    return f"Deprecated. {description}" if deprecated else description


def _get_success_responses(document: OpenApiDocument, operation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the responses of an operation with a status 2xx, without those that cannot be resolved."""
    nodes = [node for status, node in get_map(operation, "responses").items() if str(status).startswith("2")]
    responses = []
    for node in nodes:
        with suppress(LookupError):
            responses.append(document.resolve_node(node))
    return responses
