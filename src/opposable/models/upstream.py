"""The APIs of a model's server, for requests that are passed on unchanged."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from opposable.models.http_client import Endpoint

ApiPath = Literal["chat/completions", "completions", "embeddings", "responses", "messages", "messages/count_tokens"]
"""A public API by its path after the base URL."""


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

    async def post(self, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> bytes:
        """Return the unparsed response to a request. Raises: `ModelError`."""
        return await self.endpoint.post_unchanged(self.url, self._encode(body), headers or {})

    def stream(self, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the server-sent events of a response as they are, one or more at a time. Raises: `ModelError`."""
        return self.endpoint.stream_unchanged(self.url, self._encode(body), headers or {})

    def _encode(self, body: Mapping[str, Any]) -> bytes:
        return orjson.dumps({**self.defaults, **body, "model": self.model})


def find_upstream(model: Any, path: ApiPath) -> Upstream | None:
    """Return this API of the server of a model, which may be wrapped; None without one."""
    while model is not None:
        get_upstream: Callable[[ApiPath], Upstream | None] | None = getattr(model, "get_upstream", None)
        if get_upstream is not None:
            return get_upstream(path)
        model = getattr(model, "inner", None)
    return None
