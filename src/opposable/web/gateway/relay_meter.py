"""Token budgets and token counts of relayed requests."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from opposable.agent.request_size import MAX_BOUND_TOKENS
from opposable.domain.json_text import dump_json
from opposable.domain.usage import NO_USAGE, Usage, parse_token_count
from opposable.models.base import Model
from opposable.models.upstream import ClientRequest, Upstream
from opposable.web.middleware.authentication import CURRENT_CALLER
from opposable.web.openai_errors import GatewayError
from opposable.web.telemetry.metered_model import BYTES_PER_TOKEN, is_model_failure, record_usage

MAX_MEDIA_BYTES = 1000 * BYTES_PER_TOKEN
"""What an image, a file or audio counts at most: its size says little about its tokens."""

_MEDIA = re.compile(rb"(?:data:[^,]{0,200},)?[A-Za-z0-9+/]+=*")
"""A data URL, or Base64 alone."""


class RelayMeter:
    """A context manager that records the tokens or the failure of one relayed request at its end.

    What a server streams after its last usage, or without one, is estimated if the reply is cut: an event is about a
    token. Anthropic reports the prompt at the beginning, and the reply at its end.

    Args:
        model: The model, which reports its tokens if it is metered.
        body: The request.

    Attributes:
        usage: The tokens that the server reported.
    """

    def __init__(self, model: Model, body: Mapping[str, Any]) -> None:
        self.usage = NO_USAGE
        self._model = model
        self._body = body
        self._started_at_ns = time.time_ns()
        self._event_count = 0
        self._counts: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        usage = self.usage
        has_left = kind is not None and not issubclass(kind, Exception)
        if (has_left or self._event_count) and (kind is not None or not usage.total_tokens):
            input_tokens = usage.input_tokens or self._estimate_prompt_tokens()
            usage = replace(usage, input_tokens=input_tokens, output_tokens=usage.output_tokens + self._event_count)
        if usage.total_tokens or kind is None or is_model_failure(error):
            record_usage(self._model, replace(usage, requests=1), self._started_at_ns, error)

    def count_events(self, block: bytes) -> None:
        """Count the events that the client received."""
        self._event_count += block.count(b"\n\n")

    def read_usage(self, usage: Any) -> None:
        """Note the usage of a reply or event, in the form of any API; later ones add to earlier ones.

        The `input_tokens` of Anthropic's API are those outside of the cache, whose two counts are added to them. A
        reply without a usage has null, or something else.
        """
        usage = usage if isinstance(usage, dict) else {}
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        usage = usage | details if isinstance(details, dict) else usage
        new_counts = {name: count for name in usage if (count := parse_token_count(usage, name))}
        if not new_counts:
            return
        self._event_count = 0
        counts = self._counts = self._counts | new_counts
        read_from_cache = counts.get("cache_read_input_tokens", 0)
        cached = read_from_cache + counts.get("cache_creation_input_tokens", 0)
        self.usage = Usage(
            counts["prompt_tokens"] if "prompt_tokens" in counts else counts.get("input_tokens", 0) + cached,
            counts.get("output_tokens") or counts.get("completion_tokens", 0),
            cached_tokens=read_from_cache or counts.get("cached_tokens", 0),
        )

    def limit_to_budget(self, request: ClientRequest, upstream: Upstream) -> ClientRequest:
        """Return the request with its reply bounded by what the token budget of the caller leaves.

        Raises:
            GatewayError: 429, if the budget is used up.
        """
        remaining = CURRENT_CALLER.get().get_remaining_tokens()
        if remaining is None or not upstream.max_tokens_key:
            return request
        remaining -= self._estimate_prompt_tokens()
        if remaining <= 0:
            message = "This API key has used its budget of tokens. Ask its owner for another key."
            raise GatewayError(429, message, code="budget_used_up")
        body = request.body
        names = [name for name in ("max_completion_tokens", "max_tokens", "max_output_tokens") if body.get(name)]
        name = names[0] if names else upstream.max_tokens_key
        requested = body.get(name)
        if remaining >= (requested if isinstance(requested, int) else MAX_BOUND_TOKENS):
            return request
        return replace(request, body={**body, name: remaining})

    def _estimate_prompt_tokens(self) -> int:
        texts = dump_json(self._body).split(b'"')
        media = [text for text in texts if len(text) > MAX_MEDIA_BYTES and _MEDIA.fullmatch(text)]
        excess = sum(map(len, media)) - MAX_MEDIA_BYTES * len(media)
        return (sum(map(len, texts)) + len(texts) - 1 - excess) // BYTES_PER_TOKEN
