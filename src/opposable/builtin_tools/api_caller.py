"""Tool that calls web APIs on allowed hosts."""

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments, ToolFailed, ToolRefused
from opposable.domain.json_text import dump_json, parse_json
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest
from opposable.safety.network.request_headers import is_settable_header, is_valid_header_value
from opposable.safety.network.response_body import decode_body, read_body
from opposable.safety.network.ssrf_guard import parse_allowed_hosts
from opposable.safety.network.url_parsing import DEFAULT_PORTS, UrlTarget

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
METHODS: tuple[Method, ...] = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_FORM_TYPE = "application/x-www-form-urlencoded"
MAX_RESPONSE_BYTES = 2_000_000
_TIMEOUT_SECONDS = 30.0
_REPORTED_HEADERS = frozenset({"content-type", "etag", "last-modified", "link", "location", "retry-after"})


class ApiCaller:
    """Caller of APIs on allowed hosts. It adds no credentials and follows no redirects.

    A body is JSON. If the call sets a Content-Type, a text is sent as written and an object as a form where the type
    is that of a form.

    The client's guard applies as well: an allowed host with an internal address also needs permission there.

    Args:
        client: The HTTP client with the guard against internal addresses.
        hosts: Allowed hosts: `host` for its default ports, or `host:port`.
        methods: Allowed methods.

    Raises:
        BadInput: `hosts` is empty or not valid.
    """

    def __init__(self, client: GuardedClient, hosts: Sequence[str], methods: Sequence[Method] = METHODS) -> None:
        self._client = client
        self._hosts = frozenset(parse_allowed_hosts(hosts))
        if not self._hosts:
            raise BadInput("api_caller has no allowed hosts. Pass at least one host.")
        self._methods = tuple(methods)

    async def api_caller(
        self,
        url: str,
        method: Method = "GET",
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        body: Any = None,
    ) -> dict[str, Any]:
        """Call a web API and return its status and answer.

        Args:
            url: the full address of the endpoint.
            method: the HTTP method.
            query: query parameters; a list repeats its name.
            headers: further request headers.
            body: data sent as JSON.

        Raises:
            InvalidArguments: a header cannot be sent, or the method has no body.
            ToolRefused: the host or the method is not one that may be used.
            ToolUnavailable: the server cannot be reached.
            ToolFailed: the answer is too large to be read.
        """
        if method not in self._methods:
            raise ToolRefused(f"{method} is not allowed here; the methods are {', '.join(self._methods)}.")
        if body is not None and method in ("GET", "HEAD"):
            raise InvalidArguments((FieldProblem("body", must_be(f"left out: a {method} has none")),))
        target = self._client.guard.check_url(url)
        if not self._is_allowed_target(target):
            raise ToolRefused(
                f"{target.host} is not among the hosts that may be called: {', '.join(sorted(self._hosts))}."
            )
        request_headers = _validate_headers(headers or {})
        content = None if body is None else _encode_body(body, request_headers)
        full_url = str(target.url)
        if query:
            full_url += f"{'&' if '?' in full_url else '?'}{_encode_pairs(query)}"
        request = HttpRequest(method, full_url, request_headers, content, seconds=_TIMEOUT_SECONDS)
        async with self._client.send(request) as response:
            content_bytes, is_truncated = await read_body(response, MAX_RESPONSE_BYTES)
            received = {name.lower(): value for name, value in response.headers.items()}
            headers = {name: value for name, value in received.items() if name in _REPORTED_HEADERS}
            result = {"status": response.status, "headers": headers}
            charset = response.charset
        if is_truncated:
            raise ToolFailed(f"The answer is larger than {MAX_RESPONSE_BYTES:,} bytes; ask for less at a time.")
        return result | ({"body": _parse_body(content_bytes, charset)} if content_bytes else {})

    def _is_allowed_target(self, target: UrlTarget) -> bool:
        """Return whether a target is allowed. An allowed host without a port means its default ports."""
        is_default_port = target.port == DEFAULT_PORTS[target.scheme]
        return f"{target.host}:{target.port}" in self._hosts or (is_default_port and target.host in self._hosts)


def _validate_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not is_settable_header(name):
            raise InvalidArguments((FieldProblem(f"headers.{name}"[:80], "is no header that can be set"),))
        if not is_valid_header_value(value):
            raise InvalidArguments((FieldProblem(f"headers.{name}", must_be("one line of text")),))
    return {name.lower(): value for name, value in headers.items()}


def _encode_body(body: Any, headers: dict[str, str]) -> bytes:
    """Encode a body for the Content-Type of the call, and set the default, JSON."""
    content_type = headers.get("content-type", "")
    if content_type and isinstance(body, str):
        return body.encode("utf-8", "replace")
    if content_type.partition(";")[0].strip().lower() == _FORM_TYPE and isinstance(body, dict):
        return _encode_pairs(body).encode()
    headers["content-type"] = content_type or "application/json"
    return dump_json(body, default=str)


def _encode_pairs(values: dict[str, Any]) -> str:
    pairs = [
        (name, item if isinstance(item, str) else dump_json(item, default=str).decode())
        for name, value in values.items()
        if value is not None
        for item in (value if isinstance(value, list) else [value])
    ]
    return urlencode(pairs, errors="replace")


def _parse_body(raw: bytes, charset: str | None) -> Any:
    text = decode_body(raw, charset)
    if text is None:
        return f"<{len(raw)} bytes>"
    try:
        return parse_json(text)
    except ValueError:
        return text
