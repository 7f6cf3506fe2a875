"""The embedded model: a GGUF file run in this process, no key and no network."""

import asyncio
import contextlib
import http.client
import os
import secrets
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.events import ModelEvent
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import OpenAICompatibleModel, ServerQuirks

DEFAULT_MAX_REPLY_TOKENS = 2048
"""Tokens a reply may take where the asker sets no bound: a small model may repeat itself until the window is full."""


class LocalModel:
    """A GGUF file run in this process by llama.cpp's server.

    The weights are loaded at the first request (some seconds). `context` is the window in tokens that all requests
    share; `parallel` requests are worked on together. Replies are the likeliest words (temperature 0) unless asked
    otherwise: a small model calls tools best so. Raises: `BadInput` for a file that is no GGUF model.
    """

    def __init__(
        self,
        path: Path,
        *,
        context_tokens: int = 16384,
        max_parallel_requests: int = 2,
        threads: int | None = None,
        read_timeout_seconds: float = 900,
    ) -> None:
        self.name = path.stem
        self._path = check_gguf_file(path)
        self._context_tokens = context_tokens
        self._max_parallel_requests = max_parallel_requests
        self._threads = threads or max(
            1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        )
        self._read_timeout_seconds = read_timeout_seconds
        self._server: Any = None
        self._client: OpenAICompatibleModel | None = None
        self._start_lock = asyncio.Lock()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """One reply in parts; leaving early stops the computation. Raises: `ModelError` kinds."""
        client = self._client or await self._start()
        parts = client.stream(messages, tools, options)
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    async def aclose(self) -> None:
        """Free the model's memory."""
        client, server, self._client, self._server = self._client, self._server, None, None
        if client is not None:
            await client.aclose()
        if server is not None:
            await asyncio.to_thread(_release_servers, [server])

    async def _start(self) -> OpenAICompatibleModel:
        async with self._start_lock:
            if self._client is None:
                # The server listens on loopback, where any local user could reach it: hence a key of its own.
                key = secrets.token_urlsafe(24)
                self._server = await asyncio.to_thread(self._load_server, key)
                self._client = OpenAICompatibleModel(
                    self.name,
                    f"{self._server.listening_address}/v1",
                    key,
                    quirks=ServerQuirks(
                        extra_body={"temperature": 0, "cache_prompt": True, "max_tokens": DEFAULT_MAX_REPLY_TOKENS}
                    ),
                    retry_policy=RetryPolicy(max_attempts=2, read_timeout_seconds=self._read_timeout_seconds),
                )
            return self._client

    def _load_server(self, key: str) -> Any:
        # Threads that spin while they wait for one another collapse as soon as anything else wants a core (measured: 2
        # tokens a second instead of 17); sleeping ones write 40 % slower at best and never collapse. Read at loading.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import xllamacpp
        except ImportError as error:
            raise BadInput('The embedded model needs the extra "local": pip install "opposable[local]".') from error
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self._context_tokens
        params.n_parallel = self._max_parallel_requests
        params.kv_unified = True
        params.use_jinja = True
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.verbosity = -1
        params.warmup = False
        params.api_keys = [key]
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelUnavailable(
                f"llama.cpp cannot load {self._path.name}: the file may be damaged or too large for this machine's memory."
            ) from error
        _wait_until_ready(server.listening_address, key)
        return server


def check_gguf_file(path: Path) -> Path:
    """`path` if it looks like a GGUF file. Raises: `BadInput`."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise BadInput(f"Cannot read the model file {path}: {error.strerror}.") from error
    if magic != b"GGUF":
        raise BadInput(f"{path} is no GGUF model: such a file begins with the letters GGUF.")
    return path


def _wait_until_ready(address: str, key: str) -> None:
    """Wait until the server's own threads work: one that is let go of before that, as by Ctrl-C, never ends.

    Its slots are told by the thread that computes; its health is told before that thread has begun.
    """
    connection = http.client.HTTPConnection(address.partition("://")[2], timeout=60)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/slots", headers={"authorization": f"Bearer {key}"})
        connection.getresponse().read()


def _release_servers(servers: list[Any]) -> None:
    """Let go of the server in a thread: its end waits for its own threads."""
    servers.clear()
