"""From an OpenAPI document to the specs of HTTP tools, and a word on each part that could not be used."""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import EndpointConfig, HttpToolSpec, Place
from opposable.tools.http.argument_defaults import ArgumentCheck
from opposable.tools.http.openapi.document import Document, word
from opposable.tools.http.openapi.operation import Inputs, add_body, add_parameters
from opposable.tools.http.openapi.schemas import Schemas, TooLarge, without_patterns
from opposable.tools.http.openapi.security import access_of
from opposable.tools.http.request import plan_of
from opposable.tools.http.response import EVENT_STREAM, LINE_STREAMS

_METHODS = frozenset({"get", "put", "post", "delete", "patch", "head"})
_NOT_CALLED = ("options", "trace", "query", "additionalOperations")
_DESCRIPTION = 700


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a document that could not be used: where it is, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a document: the tools, and what was left out."""

    specs: tuple[HttpToolSpec, ...]
    left_out: tuple[LeftOut, ...]


def http_specs(document: Document, *, prefix: str = "", server: str = "", only: Collection[str] = ()) -> Imported:
    """A spec for each operation that can be called.

    `prefix` goes before each id (`prefix.operation`) and each secret's name; `server` replaces the document's own
    servers; `only` keeps the operations of these tags or operation ids. An operation that cannot be called, or a part of
    it, is in `left_out`. Raises: `BadInput` where the document names no server and none is given, or the
    prefix cannot be one.
    """
    if prefix and not re.fullmatch(r"[\w-]{1,40}", prefix):
        raise BadInput(f"{prefix!r} cannot stand before ids: give letters, digits, dashes and underscores, at most 40.")
    specs: dict[str, HttpToolSpec] = {}
    for path, item in document.root["paths"].items():
        try:
            item = document.resolved(item)
        except LookupError as error:
            document.left_out.append((str(path), str(error)))
            continue
        for method, operation in item.items():
            if method not in _METHODS or not isinstance(operation, Mapping) or not _wanted(operation, only):
                continue
            where = f"{method.upper()} {path}"
            try:
                spec = _spec(document, where, item, operation, specs, prefix, server)
            except (LookupError, TooLarge, ToolRegistrationError, ValidationError, TypeError, ValueError) as error:
                document.left_out.append((where, f"no tool: {_reason(error)}"))
                continue
            specs[spec.tool_id] = spec
        document.left_out += [
            (f"{name.upper()} {path}", "this method is not called") for name in _NOT_CALLED if name in item
        ]
    if document.root.get("webhooks"):
        document.left_out.append(("webhooks", "they are calls to you, not by you"))
    told = dict.fromkeys(LeftOut(where, why) for where, why in document.left_out)
    return Imported(tuple(specs.values()), tuple(told))


def _wanted(operation: Mapping[str, Any], only: Collection[str]) -> bool:
    named = [operation.get("operationId"), *_tags(operation)]
    return not only or any(name in only for name in named)


def _tags(operation: Mapping[str, Any]) -> tuple[str, ...]:
    tags = operation.get("tags")
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def _text(value: Any) -> str:
    """A text of the document on one line; nothing where it has something else there."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _reason(error: Exception) -> str:
    if isinstance(error, TooLarge):
        return "its schemas are too large"
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False))
    return str(error).splitlines()[0]


def _spec(
    document: Document,
    where: str,
    item: Mapping[str, Any],
    operation: Mapping[str, Any],
    taken: Collection[str],
    prefix: str,
    server: str,
) -> HttpToolSpec:
    method, _, path = where.partition(" ")
    schemas = Schemas(document, where)
    inputs = Inputs()
    add_parameters(document, schemas, inputs, _parameters(document, item, operation), where)
    for name in re.findall(r"\{([^{}]+)\}", path):
        if not any(_is_path(place) and (place.name or known) == name for known, place in _placed(inputs)):
            inputs.add(name, {"type": "string"}, Place(place="path"), required=True)
            document.left_out.append((where, f"parameter {name} is not described; it is taken as text"))
    if "requestBody" in operation and method not in ("GET", "HEAD"):
        add_body(document, schemas, inputs, operation["requestBody"], where)
    elif "requestBody" in operation:
        document.left_out.append((where, f"a {method} has no body; it is sent without one"))
    access = access_of(document, operation, prefix)
    endpoint = EndpointConfig.model_validate(
        {
            "url_template": f"{_server(document, item, operation, server)}{_template(path, inputs)}",
            "method": method,
            "headers": dict(access.headers),
            "auth": access.auth,
            "places": _listed(inputs.places, method),
            "defaults": False,
            **inputs.body,
        }
    )
    deprecated = operation.get("deprecated") is True
    tool_id = _tool_id(operation, where, taken, prefix)
    spec = HttpToolSpec(
        tool_id=tool_id,
        display_name=_text(operation.get("summary"))[:200],
        description=_description(operation, item, where, deprecated=deprecated),
        tags=_tags(operation),
        version=word(_info(document).get("version", "1.0.0")),
        category=prefix or "general",
        mode="streamable" if _streams(document, operation) else "invokable",
        idempotent=method in ("GET", "HEAD"),
        metadata={"operation": where, "deprecated": deprecated},
        endpoint=endpoint,
        parameters=_parameters_schema(document, where, tool_id, inputs, schemas),
    )
    plan_of(tool_id, endpoint, tuple(spec.parameters["properties"]))
    return spec


def _info(document: Document) -> Mapping[str, Any]:
    info = document.root.get("info")
    return info if isinstance(info, Mapping) else {}


def _parameters(document: Document, item: Mapping[str, Any], operation: Mapping[str, Any]) -> list[Any]:
    """An operation's parameters, after those of its path that it does not replace."""
    found: dict[tuple[Any, Any], Any] = {}
    for node in [*item.get("parameters", ()), *operation.get("parameters", ())]:
        parameter = document.resolved(node)
        found[parameter.get("name"), parameter.get("in")] = parameter
    return list(found.values())


def _placed(inputs: Inputs) -> list[tuple[str, Place]]:
    return [(name, place) for name, place in inputs.places.items() if isinstance(place, Place)]


def _is_path(place: Place) -> bool:
    return place.place == "path"


def _template(path: str, inputs: Inputs) -> str:
    """A path with the tool's names for its parameters."""
    names = {place.name or name: name for name, place in _placed(inputs) if _is_path(place)}
    return re.sub(r"\{([^{}]+)\}", lambda found: f"{{{names.get(found[1], found[1])}}}", path)


def _listed(places: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The places that are not where a parameter would go by itself."""
    by_itself = Place(place="query" if method in ("GET", "HEAD", "DELETE") else "body")
    return {
        name: place.place if place == Place(place=place.place) else place
        for name, place in places.items()
        if place != by_itself and place != Place(place="path")
    }


def _server(document: Document, item: Mapping[str, Any], operation: Mapping[str, Any], given: str) -> str:
    if given:
        return given.rstrip("/")
    for holder in (operation, item, document.root):
        servers = holder.get("servers")
        if isinstance(servers, list) and servers and isinstance(servers[0], Mapping):
            return _filled(document, servers[0])
    return _filled(document, {"url": "/"})


def _filled(document: Document, server: Mapping[str, Any]) -> str:
    """A server's URL with its variables' defaults, made absolute by where the document came from."""
    variables = server.get("variables")
    url = _text(server.get("url", "/"))
    for name, variable in (variables if isinstance(variables, Mapping) else {}).items():
        url = url.replace(f"{{{name}}}", word(variable.get("default", "")) if isinstance(variable, Mapping) else "")
    url = urljoin(document.source_url, url) if document.source_url else url
    if not urlsplit(url).netloc:
        raise BadInput(f"The document's server is {url!r}, which names no host; give the server's URL.")
    return url.rstrip("/")


def _parameters_schema(
    document: Document, where: str, tool_id: str, inputs: Inputs, schemas: Schemas
) -> dict[str, Any]:
    """The tool's schema, which compiles; its patterns are left out where they do not."""
    schema: dict[str, Any] = {"type": "object", "properties": inputs.properties}
    schema |= {"required": inputs.required} if inputs.required else {}
    schema |= {"$defs": schemas.definitions} if schemas.definitions else {}
    try:
        ArgumentCheck(tool_id, schema)
    except ToolRegistrationError:
        schema = without_patterns(schema)
        ArgumentCheck(tool_id, schema)
        document.left_out.append((where, "its patterns are not checked: they are in another language of expressions"))
    return schema


def _tool_id(operation: Mapping[str, Any], where: str, taken: Collection[str], prefix: str) -> str:
    """The operation's id, or its method and path, as an id that is not taken."""
    named = operation.get("operationId")
    plain = named if isinstance(named, str) and named.strip() else where.lower()
    plain = re.sub(r"[^\w.-]+", "_", plain).strip("_.") or "operation"
    whole = f"{prefix}.{plain}" if prefix else plain
    if len(whole) > 100:
        whole = f"{whole[:91]}_{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    name, count = whole, 1
    while name in taken:
        count += 1
        name = f"{whole[:96]}_{count}"
    return name


def _description(operation: Mapping[str, Any], item: Mapping[str, Any], where: str, *, deprecated: bool) -> str:
    summary, text = (_text(operation.get(key)) or _text(item.get(key)) for key in ("summary", "description"))
    told = text if text.lower().startswith(summary.lower().rstrip(".")) else f"{summary.rstrip('.')}. {text}".strip()
    told = told or where
    told = told if len(told) <= _DESCRIPTION else told[: _DESCRIPTION - 1] + "…"
    return f"Deprecated. {told}" if deprecated else told


def _streams(document: Document, operation: Mapping[str, Any]) -> bool:
    """Whether a successful answer of the operation may be a stream."""
    responses = operation.get("responses")
    for status, node in (responses if isinstance(responses, Mapping) else {}).items():
        if str(status).startswith("2"):
            try:
                content = document.resolved(node).get("content")
            except LookupError:
                continue
            if isinstance(content, Mapping) and ({EVENT_STREAM} | LINE_STREAMS) & set(content):
                return True
    return False
