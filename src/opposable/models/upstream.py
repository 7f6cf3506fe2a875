"""The APIs of a model's server, for requests that are passed on unchanged."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from opposable.domain.json_text import dump_json
from opposable.models.http_client import Endpoint, HttpMethod

if TYPE_CHECKING:
    from aiohttp import ClientResponse

ApiPath = Literal["chat/completions", "completions", "embeddings", "responses", "messages", "messages/count_tokens"]
"""A public API by its path after the base URL."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request of a client.

    Attributes:
        body: The JSON object of the request, {} for a request without a body.
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

    async def send(self, request: ClientRequest, method: HttpMethod = "POST", path: str = "") -> bytes:
        """Return the unparsed response to a request, at the URL of the API or a path below it. Raises: `ModelError`."""
        async with self._open(request, method, path) as response:
            return await self.endpoint.read_body(response)

    async def stream(
        self, request: ClientRequest, method: HttpMethod = "POST", path: str = ""
    ) -> AsyncGenerator[bytes, None]:
        """Yield the server-sent events of a response as they are, one or more whole events at a time.

        A response that is not a stream is yielded whole; lines end in LF. Raises: `ModelError`.
        """
        async with self._open(request, method, path) as response:
            if response.content_type != "text/event-stream":
                raw = await self.endpoint.read_body(response)
                if raw.lstrip().startswith(b"{"):
                    raw = b"data: " + raw.replace(b"\n", b" ") + b"\n\n"
                elif not raw.startswith((b"data:", b"event:", b":")):
                    raise self.endpoint.build_not_json_error(raw)
                yield raw
                return
            rest = b""
            async for chunk in response.content.iter_any():
                rest = self.endpoint.check_size(response, rest + chunk)
                events, separator, rest = rest.replace(b"\r\n", b"\n").rpartition(b"\n\n")
                if separator:
                    yield events + separator
            if rest.strip():
                yield rest + b"\n\n"

    def _open(
        self, request: ClientRequest, method: HttpMethod, path: str
    ) -> "AbstractAsyncContextManager[ClientResponse]":
        url = f"{self.url}{path}?{request.query}" if request.query else f"{self.url}{path}"
        body = dump_json({**self.defaults, **request.body, "model": self.model}) if request.body else b""
        return self.endpoint.relay(method, url, body, request.headers, request.response_headers)


def find_upstream(model: Any, path: ApiPath) -> Upstream | None:
    """Return this API of the server of a model, which may be wrapped; None without one."""
    while model is not None:
        get_upstream: Callable[[ApiPath], Upstream | None] | None = getattr(model, "get_upstream", None)
        if get_upstream is not None:
            return get_upstream(path)
        model = getattr(model, "inner", None)
    return None
