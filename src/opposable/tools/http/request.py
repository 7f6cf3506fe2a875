"""From arguments to a request: template, mapping, authentication, body."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError, ToolUnavailable
from opposable.domain.specs import EndpointConfig, ParameterPlacement
from opposable.safety.network.guarded_client import HttpRequest
from opposable.safety.network.request_headers import is_settable_header, is_token, is_valid_header_value
from opposable.tools.http.parameter_styles import NameValuePairs, format_pairs, format_simple
from opposable.tools.http.request_body import encode_body
from opposable.tools.http.secrets import Redactor, get_variable_name, resolve_value
from opposable.tools.http.url_template import UrlTemplate, parse_url_template, percent_encode


@dataclass(frozen=True, slots=True)
class EndpointPlan:
    """An endpoint, read once: its template, and the place of each parameter."""

    endpoint: EndpointConfig
    template: UrlTemplate
    places: Mapping[str, ParameterPlacement]


def plan_endpoint(tool_id: str, endpoint: EndpointConfig, parameter_names: tuple[str, ...]) -> EndpointPlan:
    """Read an endpoint whose parameters are `names`. Raises: `ToolRegistrationError`, saying what does not fit together."""
    template = parse_url_template(tool_id, endpoint.url_template)
    unknown = sorted(
        (template.parameters | set(endpoint.places) | ({endpoint.body_param} - {""})) - set(parameter_names)
    )
    if unknown:
        raise ToolRegistrationError(
            f"{tool_id}: the endpoint uses {', '.join(unknown)}, which its parameters do not describe."
        )
    for name in endpoint.headers:
        if not is_settable_header(name):
            raise ToolRegistrationError(f"{tool_id}: {name!r} is no header that can be set.")
    auth = endpoint.auth
    if auth.type == "api_key" and auth.place != "query" and not is_token(auth.name):
        raise ToolRegistrationError(f"{tool_id}: {auth.name!r} is no {auth.place} that a key can be sent in.")
    for value in endpoint.headers.values():
        if not is_valid_header_value(value):
            raise ToolRegistrationError(f"{tool_id}: a header's value has a line break or another control character.")
    places: dict[str, ParameterPlacement] = {}
    for name in parameter_names:
        given = endpoint.places.get(name, _get_default_place(endpoint))
        place = given if isinstance(given, ParameterPlacement) else ParameterPlacement(place=given)
        if name in template.parameters:
            place = ParameterPlacement(place="path", style=place.style, explode=place.explode)
        elif name == endpoint.body_param:
            place = ParameterPlacement(place="body")
        _check_placement(tool_id, name, place, endpoint, template)
        places[name] = place
    return EndpointPlan(endpoint, template, places)


def _check_placement(
    tool_id: str, name: str, place: ParameterPlacement, endpoint: EndpointConfig, template: UrlTemplate
) -> None:
    wire = place.name or name
    if place.place == "header" and not is_settable_header(wire):
        raise ToolRegistrationError(f"{tool_id}: parameter {name!r} cannot be the header {wire!r}.")
    if place.place == "cookie" and not is_token(wire):
        raise ToolRegistrationError(f"{tool_id}: parameter {name!r} cannot be the cookie {wire!r}.")
    if place.place == "path" and name not in template.parameters:
        raise ToolRegistrationError(
            f"{tool_id}: parameter {name!r} is placed in the path, and the URL has no {{{name}}}."
        )
    if place.place == "body" and endpoint.method in ("GET", "HEAD"):
        raise ToolRegistrationError(
            f"{tool_id}: a {endpoint.method} has no body, and parameter {name!r} is placed there."
        )
    if place.place == "body" and endpoint.body_type in ("text", "binary") and name != endpoint.body_param:
        raise ToolRegistrationError(f"{tool_id}: a {endpoint.body_type} body is one parameter, named by body_param.")


def read_secrets(endpoint: EndpointConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The values of all references of an endpoint by reference. Raises: `ToolUnavailable` for a variable not set."""
    auth = endpoint.auth
    given = {
        "none": (),
        "bearer": (auth.token,),
        "api_key": (auth.token,),
        "basic": (auth.username, auth.password),
    }[auth.type]
    references = [one for one in (*given, *endpoint.headers.values()) if get_variable_name(one) is not None]
    return {reference: resolve_value(reference, environ) for reference in references}


@dataclass(slots=True)
class _RequestParts:
    """The parts of a request while arguments are put in their places."""

    headers: dict[str, str]
    path: dict[str, str] = field(default_factory=dict)
    query: NameValuePairs = field(default_factory=list)
    cookies: NameValuePairs = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)

    def place_argument(self, name: str, value: Any, place: ParameterPlacement) -> None:
        """Put one argument in its place. Raises: `InvalidArguments`."""
        match place.place:
            case "path":
                self.path[name] = format_simple(name, value, place)
            case "query":
                self.query += format_pairs(name, value, place)
            case "cookie":
                self.cookies += format_pairs(name, value, place)
            case "header":
                self.headers[place.name or name] = _check_header_value(name, format_simple(name, value, place))
            case "body":
                self.body[place.name or name] = value


async def build_request(
    plan: EndpointPlan, arguments: Mapping[str, Any], environ: Mapping[str, str], idempotency_key: str = ""
) -> tuple[HttpRequest, Redactor]:
    """The request for checked arguments, and what takes its secrets out of the answer.

    An argument that is null is left out, except in a body. `key` is sent as Idempotency-Key by methods that change
    something, unless the endpoint sets one. Raises: `InvalidArguments`, `ToolUnavailable`.
    """
    endpoint = plan.endpoint
    secrets = read_secrets(endpoint, environ)
    parts = _RequestParts({name: secrets.get(value, value) for name, value in endpoint.headers.items()})
    for name, value in arguments.items():
        place = plan.places.get(name) or _get_default_place(endpoint)
        if value is not None or place.place == "body":
            parts.place_argument(name, value, place)
    hidden = _authorize(endpoint, secrets, parts)
    content, content_type = await encode_body(endpoint, parts.body)
    headers = {name.lower(): value for name, value in parts.headers.items()}
    if content_type:
        headers["content-type"] = content_type
    if (
        idempotency_key
        and idempotency_key.isascii()
        and idempotency_key.isprintable()
        and endpoint.method not in ("GET", "HEAD")
    ):
        headers.setdefault("idempotency-key", idempotency_key)
    if parts.cookies:
        headers["cookie"] = "; ".join(f"{name}={quote(value, safe='')}" for name, value in parts.cookies)
    url = _append_query(plan.template.fill(parts.path), parts.query)
    limits = (endpoint.timeout, endpoint.connect_timeout, endpoint.redirects)
    return HttpRequest(endpoint.method, url, headers, content, *limits), Redactor([*secrets.values(), *hidden])


def _get_default_place(endpoint: EndpointConfig) -> ParameterPlacement:
    return ParameterPlacement(place="query" if endpoint.method in ("GET", "HEAD", "DELETE") else "body")


def _authorize(endpoint: EndpointConfig, secrets: Mapping[str, str], parts: _RequestParts) -> list[str]:
    """Add what authentication needs; gives back what else must not be seen."""
    auth = endpoint.auth
    if auth.type == "none":
        return []
    if auth.type == "basic":
        username, password = (secrets.get(part, part) for part in (auth.username, auth.password))
        if ":" in username:
            raise ToolUnavailable("The user name for this tool holds a colon, which HTTP Basic cannot send.")
        pair = f"{username}:{password}"
        parts.headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return [pair]
    token = secrets[auth.token]
    if auth.type == "bearer":
        parts.headers["Authorization"] = f"Bearer {token}"
    elif auth.place == "header":
        parts.headers[auth.name] = token
    else:
        (parts.query if auth.place == "query" else parts.cookies).append((auth.name, token))
    return []


def _check_header_value(name: str, value: str) -> str:
    if not is_valid_header_value(value):
        raise InvalidArguments((FieldProblem(name, "must be one line: it is sent as a header"),))
    return value.strip()


def _append_query(url: str, query: NameValuePairs) -> str:
    if not query:
        return url
    told = "&".join(f"{percent_encode(name, name)}={percent_encode(name, value)}" for name, value in query)
    return f"{url}{'&' if '?' in url else '?'}{told}"
