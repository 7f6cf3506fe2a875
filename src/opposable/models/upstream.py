"""The APIs of a model's server, for requests that are passed on unchanged."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.domain.json_text import dump_json
from opposable.models.http_client import Endpoint, HttpMethod

ApiPath = Literal["chat/completions", "completions", "embeddings", "responses", "messages", "messages/count_tokens"]
"""A public API by its path after the base URL."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request of a client.

    Attributes:
        body: The JSON object of the request.
        headers: The headers that reach a server with the same API.
        query: The query string.
        response_headers: The headers for the client's response: those of the server, once it has answered.
    """

    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    response_headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upstream:
    """One API of a model's server.

    Attributes:
        endpoint: The connection to the server.
        url: The URL of the API.
        model: The name of the model on the server.
        defaults: Fields of the body that a request can replace.
        max_tokens_key: The field that limits the reply, "" if the API has none.
    """

    endpoint: Endpoint
    url: str
    model: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    max_tokens_key: str = ""

    async def post(self, request: ClientRequest) -> bytes:
        """Return the unparsed response to a request. Raises: `ModelError`."""
        return await self.endpoint.send_unchanged(*self._translate(request))

    def stream(self, request: ClientRequest) -> AsyncGenerator[bytes, None]:
        """Yield the server-sent events of a response as they are, one or more at a time. Raises: `ModelError`."""
        return self.endpoint.stream_unchanged(*self._translate(request))

    async def send(self, method: HttpMethod, path: str, request: ClientRequest) -> bytes:
        """Return the unparsed response to a request without a body, to a path below the API. Raises: `ModelError`."""
        url = self._join_url(path, request.query)
        return await self.endpoint.send_unchanged(url, b"", request.headers, request.response_headers, method)

    def stream_stored(self, path: str, request: ClientRequest) -> AsyncGenerator[bytes, None]:
        """Yield the server-sent events of a path below the API, as `stream`. Raises: `ModelError`."""
        url = self._join_url(path, request.query)
        return self.endpoint.stream_unchanged(url, b"", request.headers, request.response_headers, "GET")

    def _join_url(self, path: str, query: str) -> str:
        return f"{self.url}{path}?{query}" if query else f"{self.url}{path}"

    def _translate(self, request: ClientRequest) -> tuple[str, bytes, Mapping[str, str], dict[str, str]]:
        """Return the URL, the body and the headers for the server, and where those of its response go."""
        url = self._join_url("", request.query)
        body = dump_json({**self.defaults, **request.body, "model": self.model})
        return url, body, request.headers, request.response_headers


def find_upstream(model: Any, path: ApiPath) -> Upstream | None:
    """Return this API of the server of a model, which may be wrapped; None without one."""
    while model is not None:
        get_upstream: Callable[[ApiPath], Upstream | None] | None = getattr(model, "get_upstream", None)
        if get_upstream is not None:
            return get_upstream(path)
        model = getattr(model, "inner", None)
    return None
