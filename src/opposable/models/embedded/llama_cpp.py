"""The embedded model: a GGUF file in the server of llama.cpp, which is a process of its own."""

import asyncio
import contextlib
import json
import os
import secrets
import sys
import weakref
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from subprocess import PIPE, Popen

from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.events import ModelEvent
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions
from opposable.models.embedded import llama_cpp_server
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import OpenAICompatibleModel, ServerQuirks
from opposable.models.profile import ModelProfile

DEFAULT_MAX_REPLY_TOKENS = 2048
"""The default length of a reply: a small model can repeat itself until the context window is full."""

EXTRA_PARAMETERS = frozenset(
    (
        *("top_p", "top_k", "min_p", "typical_p", "presence_penalty", "frequency_penalty", "repeat_penalty"),
        *("logit_bias", "chat_template_kwargs"),
    )
)
"""Fields of `ModelOptions.extra_body` that llama.cpp supports."""


class LocalModel:
    """A GGUF file run by the server of llama.cpp, in a process of its own: loading holds Python's lock for seconds.

    The first request starts it and loads the weights, which takes some seconds; so does the next one after it failed.
    It ends with this process. The default temperature is 0, because small models call tools best that way.

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
        self._process: Popen[str] | None = None
        self._client: OpenAICompatibleModel | None = None
        self._start_lock = asyncio.Lock()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts; closing the iterator stops the computation.

        Raises: `ModelError`.
        """
        client = await self._start()
        async with contextlib.aclosing(client.stream(messages, tools, options)) as parts:
            async for part in parts:
                yield part

    async def aclose(self) -> None:
        """Free the memory of the model."""
        client, process = self._client, self._process
        self._client = self._process = None
        if process is not None:
            await asyncio.to_thread(_end_process, process)
        if client is not None:
            await client.aclose()

    async def _start(self) -> OpenAICompatibleModel:
        async with self._start_lock:
            if self._client is not None and self._process is not None and self._process.poll() is None:
                return self._client
            await self.aclose()  # what a cancelled start or a process that ended has left
            # The server listens on loopback, where any local user can reach it, so it requires a key.
            key = secrets.token_urlsafe(24)
            command = [sys.executable, "-P", llama_cpp_server.__file__]
            # In a session of its own it gets no Ctrl-C, as the caller may still need it. The end of its input ends it.
            process = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True, text=True)  # noqa: S603, ASYNC220
            weakref.finalize(self, _end_process, process)
            self._process = process
            address = await asyncio.to_thread(self._load_weights, process, key)
            defaults = {"temperature": 0, "cache_prompt": True, "max_tokens": DEFAULT_MAX_REPLY_TOKENS}
            policy = RetryPolicy(max_attempts=2, read_timeout_seconds=self._read_timeout_seconds)
            quirks = ServerQuirks(extra_body=defaults)
            self._client = OpenAICompatibleModel(self.name, f"{address}/v1", key, quirks=quirks, retry_policy=policy)
            return self._client

    def _load_weights(self, process: Popen[str], key: str) -> str:
        fields = {
            "path": str(self._path),
            "threads": self._threads,
            "n_ctx": self._context_tokens,
            "n_parallel": self._max_parallel_requests,
            "api_keys": [key],
        }
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(fields), file=process.stdin, flush=True)
        if process.stdout and (address := process.stdout.readline().strip()):
            return address
        if process.wait() == llama_cpp_server.MISSING_LIBRARY_EXIT_CODE:
            raise BadInput('The embedded model needs the extra "local": pip install "opposable[local]"')
        if process is not self._process:
            raise ModelUnavailable(f"{self._path.name} was closed while it was loaded.")
        raise ModelUnavailable(
            f"llama.cpp cannot load {self._path.name}: the file may be damaged, or too large for the memory of this machine."
        )


def _end_process(process: Popen[str]) -> None:
    process.kill()
    process.communicate()


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
