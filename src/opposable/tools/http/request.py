"""From arguments to a request: template, mapping, authentication, body."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError, ToolUnavailable
from opposable.domain.specs import EndpointConfig, Place
from opposable.safety.network.guarded_client import Request
from opposable.safety.network.request_headers import is_one_line, is_token, may_be_set
from opposable.tools.http.parameter_styles import Pairs, pairs, simple
from opposable.tools.http.request_body import body_of
from opposable.tools.http.secrets import Redaction, value_of, variable_of
from opposable.tools.http.url_template import UrlTemplate, encoded, url_template


@dataclass(frozen=True, slots=True)
class Plan:
    """An endpoint, read once: its template, and the place of each parameter."""

    endpoint: EndpointConfig
    template: UrlTemplate
    places: Mapping[str, Place]


def plan_of(tool_id: str, endpoint: EndpointConfig, names: tuple[str, ...]) -> Plan:
    """Read an endpoint whose parameters are `names`. Raises: `ToolRegistrationError`, saying what does not fit together."""
    template = url_template(tool_id, endpoint.url_template)
    unknown = sorted((template.names | set(endpoint.places) | ({endpoint.body_param} - {""})) - set(names))
    if unknown:
        raise ToolRegistrationError(
            f"{tool_id}: the endpoint uses {', '.join(unknown)}, which its parameters do not describe."
        )
    for name in endpoint.headers:
        if not may_be_set(name):
            raise ToolRegistrationError(f"{tool_id}: {name!r} is no header that can be set.")
    auth = endpoint.auth
    if auth.type == "api_key" and auth.place != "query" and not is_token(auth.name):
        raise ToolRegistrationError(f"{tool_id}: {auth.name!r} is no {auth.place} that a key can be sent in.")
    for value in endpoint.headers.values():
        if not is_one_line(value):
            raise ToolRegistrationError(f"{tool_id}: a header's value has a line break or another control character.")
    places: dict[str, Place] = {}
    for name in names:
        given = endpoint.places.get(name, _default_place(endpoint))
        place = given if isinstance(given, Place) else Place(place=given)
        if name in template.names:
            place = Place(place="path", style=place.style, explode=place.explode)
        elif name == endpoint.body_param:
            place = Place(place="body")
        _fitting(tool_id, name, place, endpoint, template)
        places[name] = place
    return Plan(endpoint, template, places)


def _fitting(tool_id: str, name: str, place: Place, endpoint: EndpointConfig, template: UrlTemplate) -> None:
    wire = place.name or name
    if place.place == "header" and not may_be_set(wire):
        raise ToolRegistrationError(f"{tool_id}: parameter {name!r} cannot be the header {wire!r}.")
    if place.place == "cookie" and not is_token(wire):
        raise ToolRegistrationError(f"{tool_id}: parameter {name!r} cannot be the cookie {wire!r}.")
    if place.place == "path" and name not in template.names:
        raise ToolRegistrationError(
            f"{tool_id}: parameter {name!r} is placed in the path, and the URL has no {{{name}}}."
        )
    if place.place == "body" and endpoint.method in ("GET", "HEAD"):
        raise ToolRegistrationError(
            f"{tool_id}: a {endpoint.method} has no body, and parameter {name!r} is placed there."
        )
    if place.place == "body" and endpoint.body_type in ("text", "binary") and name != endpoint.body_param:
        raise ToolRegistrationError(f"{tool_id}: a {endpoint.body_type} body is one parameter, named by body_param.")


def secrets_of(endpoint: EndpointConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The values of all references of an endpoint by reference. Raises: `ToolUnavailable` for a variable not set."""
    auth = endpoint.auth
    given = {
        "none": (),
        "bearer": (auth.token,),
        "api_key": (auth.token,),
        "basic": (auth.username, auth.password),
    }[auth.type]
    references = [one for one in (*given, *endpoint.headers.values()) if variable_of(one) is not None]
    return {reference: value_of(reference, environ) for reference in references}


@dataclass(slots=True)
class _Parts:
    """The parts of a request while arguments are put in their places."""

    headers: dict[str, str]
    path: dict[str, str] = field(default_factory=dict)
    query: Pairs = field(default_factory=list)
    cookies: Pairs = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)

    def put(self, name: str, value: Any, place: Place) -> None:
        """Put one argument in its place. Raises: `InvalidArguments`."""
        match place.place:
            case "path":
                self.path[name] = simple(name, value, place)
            case "query":
                self.query += pairs(name, value, place)
            case "cookie":
                self.cookies += pairs(name, value, place)
            case "header":
                self.headers[place.name or name] = _header(name, simple(name, value, place))
            case "body":
                self.body[place.name or name] = value


async def request_of(
    plan: Plan, arguments: Mapping[str, Any], environ: Mapping[str, str], key: str = ""
) -> tuple[Request, Redaction]:
    """The request for checked arguments, and what takes its secrets out of the answer.

    An argument that is null is left out, except in a body. `key` is sent as Idempotency-Key by methods that change
    something, unless the endpoint sets one. Raises: `InvalidArguments`, `ToolUnavailable`.
    """
    endpoint = plan.endpoint
    secrets = secrets_of(endpoint, environ)
    parts = _Parts({name: secrets.get(value, value) for name, value in endpoint.headers.items()})
    for name, value in arguments.items():
        place = plan.places.get(name) or _default_place(endpoint)
        if value is not None or place.place == "body":
            parts.put(name, value, place)
    hidden = _authorize(endpoint, secrets, parts)
    content, content_type = await body_of(endpoint, parts.body)
    headers = {name.lower(): value for name, value in parts.headers.items()}
    if content_type:
        headers["content-type"] = content_type
    if key and key.isascii() and key.isprintable() and endpoint.method not in ("GET", "HEAD"):
        headers.setdefault("idempotency-key", key)
    if parts.cookies:
        headers["cookie"] = "; ".join(f"{name}={quote(value, safe='')}" for name, value in parts.cookies)
    url = _with_query(plan.template.fill(parts.path), parts.query)
    limits = (endpoint.timeout, endpoint.connect_timeout, endpoint.redirects)
    return Request(endpoint.method, url, headers, content, *limits), Redaction([*secrets.values(), *hidden])


def _default_place(endpoint: EndpointConfig) -> Place:
    return Place(place="query" if endpoint.method in ("GET", "HEAD", "DELETE") else "body")


def _authorize(endpoint: EndpointConfig, secrets: Mapping[str, str], parts: _Parts) -> list[str]:
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


def _header(name: str, value: str) -> str:
    if not is_one_line(value):
        raise InvalidArguments((FieldProblem(name, "must be one line: it is sent as a header"),))
    return value.strip()


def _with_query(url: str, query: Pairs) -> str:
    if not query:
        return url
    told = "&".join(f"{encoded(name, name)}={encoded(name, value)}" for name, value in query)
    return f"{url}{'&' if '?' in url else '?'}{told}"
