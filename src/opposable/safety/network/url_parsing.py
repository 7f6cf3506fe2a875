"""Strict parsing of URLs: each has one host and one port, or is refused."""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, urlsplit

import idna
from yarl import URL

from opposable.domain.errors import ToolRefused
from opposable.safety.network.ip_addresses import Address

_DNS_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_FORBIDDEN_CHARACTER = re.compile(r"[\x00-\x20\x7f\\]")
_PATH_SAFE = "/:@!$&'()*+,;=~-._%"
_QUERY_SAFE = _PATH_SAFE + "?"
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class UrlTarget:
    """The target of a URL.

    `host` is lower-case ASCII without a final dot. `address` is set where the host is an IP address.
    """

    url: URL
    scheme: str
    host: str
    port: int
    address: Address | None = None

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port; credentials belong to an origin."""
        return self.scheme, self.host, self.port


def parse_url(text: str) -> UrlTarget:
    """Parse a URL strictly, so that no other parser can find another host in it.

    ASCII in path and query is unchanged; a fragment is dropped.

    Raises:
        ToolRefused: The URL has another scheme, a user name, look-alike characters in its host, a number as host that
            is not a plain address, or an invalid port.
    """
    text = text.strip(" ")
    if _FORBIDDEN_CHARACTER.search(text):
        text = _escape_spaces(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ToolRefused(f"{_quote_for_message(text)} is no URL that can be fetched: {error}.") from error
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise ToolRefused(f"{_quote_for_message(text)} cannot be fetched: a URL begins with https:// or http://.")
    if "@" in parts.netloc:
        raise ToolRefused("A URL with a user name or password in it is refused.")
    host, address = _parse_netloc(parts.netloc)
    if port == 0 or (port is None and parts.netloc.endswith(":")):
        raise ToolRefused(f"{_quote_for_message(text)} has no usable port.")
    url_host = f"[{host}]" if isinstance(address, IPv6Address) else host
    suffix = "" if port is None or port == DEFAULT_PORTS[scheme] else f":{port}"
    path = quote(parts.path, safe=_PATH_SAFE, errors="replace") or "/"
    query = f"?{quote(parts.query, safe=_QUERY_SAFE, errors='replace')}" if parts.query else ""
    url = URL(f"{scheme}://{url_host}{suffix}{path}{query}", encoded=True)
    return UrlTarget(url, scheme, host, port or DEFAULT_PORTS[scheme], address)


def parse_host(text: str) -> tuple[str, Address | None]:
    """Return a host in normal form, and its address where it is one.

    An invalid host raises `ToolRefused`.
    """
    if text.startswith("[") and text.endswith("]"):
        return _parse_ipv6(text[1:-1])
    host = text.removesuffix(".")
    if not host.isascii():
        host = _to_ascii_host(host)
    host = host.lower()
    labels = host.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        return _parse_ipv4(host)
    if len(host) > 253 or not all(_DNS_LABEL.fullmatch(label) for label in labels):
        raise ToolRefused(f"{_quote_for_message(text)} is not a name of a host.")
    return host, None


def _parse_netloc(netloc: str) -> tuple[str, Address | None]:
    bracket = netloc.rfind("]")
    colon = netloc.rfind(":")
    text = netloc[:colon] if colon > bracket else netloc
    if colon > bracket and not re.fullmatch(r"[0-9]{0,5}", netloc[colon + 1 :]):
        raise ToolRefused(f"{_quote_for_message(netloc)} has no usable port.")
    return parse_host(text)


def _to_ascii_host(host: str) -> str:
    """Encode an international host name for DNS.

    Refuse characters that only look like ASCII.
    """
    folded = unicodedata.normalize("NFKC", host)
    if folded.isascii() or folded.count(".") != host.count(".") or any(mark in folded for mark in "/?#@:[]%\\"):
        raise ToolRefused(f"The host {_quote_for_message(host)} is written in look-alike characters; write it plainly.")
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError as error:
        raise ToolRefused(f"{_quote_for_message(host)} is not a name of a host.") from error


def _parse_ipv4(host: str) -> tuple[str, Address]:
    try:
        return host, IPv4Address(host)
    except AddressValueError as error:
        raise ToolRefused(
            f"{_quote_for_message(host)} is not a plain IPv4 address; write it as four numbers from 0 to 255."
        ) from error


def _parse_ipv6(host: str) -> tuple[str, Address]:
    try:
        address = IPv6Address(host)
    except AddressValueError as error:
        raise ToolRefused(f"{_quote_for_message(host)} is no IPv6 address.") from error
    if address.scope_id is not None:
        raise ToolRefused("An IPv6 address with a zone is refused.")
    return address.compressed, address


def _escape_spaces(text: str) -> str:
    """Escape spaces in a path or query; refuse other control characters."""
    scheme, _, rest = text.partition("://")
    separator = re.search(r"[/?#]", rest)
    host, tail = (rest, "") if separator is None else (rest[: separator.start()], rest[separator.start() :])
    if _FORBIDDEN_CHARACTER.search(scheme + host) or _FORBIDDEN_CHARACTER.search(tail.replace(" ", "")):
        raise ToolRefused(f"{_quote_for_message(text)} holds characters that do not belong in a URL.")
    return f"{scheme}://{host}{tail.replace(' ', '%20')}"


def _quote_for_message(text: str) -> str:
    """Return a URL or host for a message, without its query, which may contain a key."""
    plain = text.partition("?")[0]
    return repr(plain if len(plain) <= 120 else plain[:119] + "…")
