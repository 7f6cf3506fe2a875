"""Builds the request of an endpoint from arguments: URL, headers, authentication, body."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import quote

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError, ToolUnavailable
from opposable.domain.json_text import preview_json
from opposable.domain.specs import EndpointConfig, ParameterLocation, ParameterPlacement
from opposable.safety.network.guarded_client import HttpRequest
from opposable.safety.network.request_headers import is_settable_header, is_token, is_valid_header_value
from opposable.safety.redaction import COOKIE_SAFE_CHARACTERS, MAX_WORD_CHARACTERS
from opposable.safety.secret_references import (
    find_variable,
    has_control_character,
    is_secret_reference,
    read_variable,
    replace_reference,
)
from opposable.tools.http.parameter_styles import NameValuePairs, format_pairs, format_simple
from opposable.tools.http.request_body import encode_body
from opposable.tools.http.secrets import Redactor
from opposable.tools.http.url_template import UrlTemplate, parse_url_template, percent_encode


@dataclass(frozen=True, slots=True)
class EndpointPlan:
    """An endpoint with its parsed URL template and the placement of each parameter."""

    endpoint: EndpointConfig
    template: UrlTemplate
    placements: Mapping[str, ParameterPlacement]


def plan_endpoint(tool_id: str, endpoint: EndpointConfig, parameter_names: tuple[str, ...]) -> EndpointPlan:
    """Parse an endpoint with these parameters.

    Raises:
        ToolRegistrationError: Parts of the endpoint do not fit together.
    """
    template = parse_url_template(tool_id, endpoint.url_template)
    used_names = template.parameters | set(endpoint.places) | ({endpoint.body_param} - {""})
    unknown = sorted(used_names - set(parameter_names))
    if unknown:
        raise ToolRegistrationError(
            f"{tool_id}: the endpoint uses {', '.join(unknown)}, which its parameters do not describe."
        )
    _check_headers(tool_id, endpoint)
    placements: dict[str, ParameterPlacement] = {}
    for name in parameter_names:
        placement = get_placement(endpoint, name)
        if name in template.parameters:
            placement = ParameterPlacement(place="path", style=placement.style, explode=placement.explode)
        elif name == endpoint.body_param:
            placement = ParameterPlacement(place="body")
        if problem := _find_placement_problem(name, placement, endpoint, template):
            raise ToolRegistrationError(f"{tool_id}: {problem}.")
        placements[name] = placement
    return EndpointPlan(endpoint, template, placements)


def _check_headers(tool_id: str, endpoint: EndpointConfig) -> None:
    for name, value in endpoint.headers.items():
        if not is_settable_header(name):
            raise ToolRegistrationError(f"{tool_id}: the header {name!r} cannot be set.")
        if not is_valid_header_value(value):
            raise ToolRegistrationError(f"{tool_id}: a header's value has a line break or another control character.")
    auth = endpoint.auth
    if auth.type == "api_key" and auth.place != "query" and not is_token(auth.name):
        raise ToolRegistrationError(f"{tool_id}: a key cannot be sent in the {auth.place} {auth.name!r}.")


def _find_placement_problem(
    name: str, placement: ParameterPlacement, endpoint: EndpointConfig, template: UrlTemplate
) -> str:
    """Return why a parameter cannot be sent where it is placed, "" if it can."""
    wire_name, place = placement.name or name, placement.place
    if place == "header" and not is_settable_header(wire_name):
        return f"parameter {name!r} cannot be the header {wire_name!r}"
    if place == "cookie" and not is_token(wire_name):
        return f"parameter {name!r} cannot be the cookie {wire_name!r}"
    if place == "path" and name not in template.parameters:
        return f"parameter {name!r} is placed in the path, and the URL has no {{{name}}}"
    if place == "body" and endpoint.method in ("GET", "HEAD"):
        return f"a {endpoint.method} has no body, and parameter {name!r} is placed there"
    if place == "body" and endpoint.body_type in ("text", "binary") and name != endpoint.body_param:
        return f"a {endpoint.body_type} body is one parameter, named by body_param"
    return ""


def read_secrets(endpoint: EndpointConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of all environment variables that an endpoint refers to.

    There are none if the authentication is optional and one of the variables is not set.

    Raises:
        ToolUnavailable: An environment variable is not set, or contains a control character.
    """
    auth = endpoint.auth
    credentials = {
        "none": (),
        "bearer": (auth.token,),
        "api_key": (auth.token,),
        "basic": (auth.username, auth.password),
    }[auth.type]
    variables = filter(None, map(find_variable, (*credentials, *endpoint.headers.values())))
    secrets = {variable: read_variable(variable, environ) for variable in variables}
    if auth.optional and not all(secrets.values()):
        return {}
    for variable, secret in secrets.items():
        if not secret:
            raise ToolUnavailable(f"The environment variable {variable}, which this tool needs, is not set.")
        if has_control_character(secret):
            raise ToolUnavailable(
                f"The environment variable {variable} holds a line break or another control character."
            )
    return secrets


def _find_secrets(endpoint: EndpointConfig, secrets: Mapping[str, str]) -> list[str]:
    """Return the values to redact. User names and short settings also occur in ordinary answers."""
    auth = endpoint.auth
    credentials = (("token", auth.token), ("password", auth.password), ("username", auth.username))
    found = []
    for name, text in (*credentials, *endpoint.headers.items()):
        secret = secrets.get(find_variable(text))
        if secret is None:
            continue
        is_long_header = name in endpoint.headers and len(secret) >= MAX_WORD_CHARACTERS
        if is_long_header or is_secret_reference(name, text, secret):
            found.append(secret)
    return found


@dataclass(slots=True)
class _RequestParts:
    """The parts of a request while arguments are placed in them. Those of the URL and the cookies are encoded."""

    headers: dict[str, str]
    path: dict[str, str] = field(default_factory=dict)
    query: NameValuePairs = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)

    def place_argument(self, name: str, value: Any, placement: ParameterPlacement) -> None:
        """Add one argument to its part. Raises: `InvalidArguments`."""
        wire_name = placement.name or name
        encode = partial(percent_encode, name)
        match placement.place:
            case "path":
                self.path[name] = format_simple(name, value, placement, encode)
            case "query":
                self.query += format_pairs(name, value, placement, encode)
            case "cookie":
                for key, text in format_pairs(name, value, placement):
                    self.cookies.append(f"{key if is_token(key) else encode(key)}={encode(text)}")
            case "header":
                text = format_simple(name, value, placement)
                if not is_valid_header_value(text):
                    problem = must_be("one line: it is sent as a header")
                    raise InvalidArguments((FieldProblem(name, problem, preview_json(text)),))
                self.headers[wire_name] = text.strip()
            case "body":
                self.body[wire_name] = value


async def build_request(
    plan: EndpointPlan, arguments: Mapping[str, Any], environ: Mapping[str, str], idempotency_key: str = ""
) -> tuple[HttpRequest, Redactor]:
    """Build the request for checked arguments.

    Args:
        plan: The endpoint.
        arguments: The arguments. A null is left out, except in a body.
        environ: The environment variables with the secrets.
        idempotency_key: The value of the header Idempotency-Key for methods that change something, unless the
            endpoint sets the header.

    Returns:
        The request, and a redactor for its secrets in the answer.

    Raises:
        InvalidArguments: An argument cannot be sent where it is placed.
        ToolUnavailable: A secret is missing.
    """
    endpoint = plan.endpoint
    secrets = read_secrets(endpoint, environ)
    parts = _RequestParts({})
    for name, header in endpoint.headers.items():
        variable = find_variable(header)
        if not variable or variable in secrets:
            parts.headers[name] = replace_reference(header, secrets)
    for name, value in arguments.items():
        placement = plan.placements.get(name) or get_placement(endpoint, name)
        if value is not None or placement.place == "body":
            parts.place_argument(name, value, placement)
    derived_secrets = _authorize(endpoint, secrets, parts)
    in_body = {name: place for name, place in plan.placements.items() if place.place == "body"}
    styled = {place.name or name: place for name, place in in_body.items() if place.style}
    try:
        content, content_type = await encode_body(endpoint, parts.body, styled)
    except InvalidArguments as error:
        raise _use_parameter_names(error, in_body) from error
    headers = {name.lower(): value for name, value in parts.headers.items()}
    if content_type:
        headers["content-type"] = content_type
    can_send_key = idempotency_key.isascii() and idempotency_key.isprintable()
    if idempotency_key and can_send_key and endpoint.method not in ("GET", "HEAD"):
        headers.setdefault("idempotency-key", idempotency_key)
    if parts.cookies:
        headers["cookie"] = "; ".join(parts.cookies)
    url = plan.template.fill(parts.path)
    if parts.query:
        url += ("&" if "?" in url else "?") + "&".join(f"{name}={value}" for name, value in parts.query)
    limits = (endpoint.timeout, endpoint.connect_timeout, endpoint.redirects)
    request = HttpRequest(endpoint.method, url, headers, content, *limits)
    return request, Redactor([*_find_secrets(endpoint, secrets), *derived_secrets])


def get_placement(endpoint: EndpointConfig, name: str) -> ParameterPlacement:
    """Return the placement of a parameter: the one in `places`, else the default of the method."""
    default: ParameterLocation = "query" if endpoint.method in ("GET", "HEAD", "DELETE") else "body"
    declared = endpoint.places.get(name, default)
    return declared if isinstance(declared, ParameterPlacement) else ParameterPlacement(place=declared)


def _use_parameter_names(error: InvalidArguments, in_body: Mapping[str, ParameterPlacement]) -> InvalidArguments:
    """Return an error about fields of the body with the names of the parameters that fill them."""
    names = {place.name: name for name, place in in_body.items() if place.name}
    problems = []
    for problem in error.problems:
        name = next((name for name in names if f"{problem.field}.".startswith(f"{name}.")), "")
        problems.append(replace(problem, field=f"{names.get(name, '')}{problem.field.removeprefix(name)}"))
    return InvalidArguments(tuple(problems))


def _authorize(endpoint: EndpointConfig, secrets: Mapping[str, str], parts: _RequestParts) -> list[str]:
    """Add the credentials to the request. Return further texts that must be redacted."""
    auth = endpoint.auth
    if auth.type == "none" or (auth.optional and not secrets):
        return []
    if auth.type == "basic":
        username, password = (replace_reference(text, secrets) for text in (auth.username, auth.password))
        if ":" in username:
            raise ToolUnavailable("The user name for this tool holds a colon, which HTTP Basic cannot send.")
        pair = f"{username}:{password}"
        parts.headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return [pair]
    token = replace_reference(auth.token, secrets)
    if auth.type == "bearer":
        parts.headers["Authorization"] = f"Bearer {token}"
    elif auth.place == "header":
        parts.headers[auth.name] = token
    elif auth.place == "query":
        parts.query.append((quote(auth.name, safe=""), quote(token, safe="")))
    else:  # as it was issued: many servers do not decode cookies
        parts.cookies.append(f"{auth.name}={quote(token, safe=COOKIE_SAFE_CHARACTERS)}")
    return []
