"""A guard against server-side request forgery (SSRF)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network

from opposable.domain.errors import BadInput, ToolRefused
from opposable.safety.network.ip_addresses import Address, classify_address
from opposable.safety.network.url_parsing import UrlTarget, parse_host, parse_url

METADATA_HOSTS = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.tencentyun.com",
        "metadata.platformequinix.com",
        "metadata.azure.internal",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
INTERNAL_HOST_SUFFIXES = (
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
)
KINDS_ALLOWED_BY_NAME = frozenset({"public", "loopback", "private", "shared"})
"""Kinds of address that a host allowed by name may have; others must be allowed as addresses."""

_BLOCKED = "Private addresses are blocked, except those in OPPOSABLE_PRIVATE_HOSTS."

# Ports of services that are not HTTP but react to the bytes of an HTTP request; browsers refuse them too.
_NON_HTTP_PORTS = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515),
        *(526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049),
        *(3306, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697),
        *(10080, 11211),
    )
)


@dataclass(frozen=True, slots=True)
class _AllowedTarget:
    """An allowed host name or network, on one port or on all (None)."""

    host_or_network: str | IPv4Network | IPv6Network
    port: int | None


@dataclass(frozen=True)
class SsrfGuard:
    """A check of URLs and addresses that tools want to reach.

    `allow` lists targets besides the public Internet: `host`, `host:port`, an address, an address with a port
    (`[::1]:8080`), or a network (`10.1.0.0/16`).

    Raises:
        BadInput: An entry of `allow` has none of these forms.
    """

    allow: tuple[str, ...] = ()
    _allowed_targets: tuple[_AllowedTarget, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed_targets", tuple(_parse_target(entry) for entry in self.allow))

    def check_url(self, url: str) -> UrlTarget:
        """Parse a URL and check its target, before name resolution.

        A target that is not allowed raises `ToolRefused`.
        """
        target = parse_url(url)
        if target.address is not None:
            self.check_address(target.address, target.host, target.port)
        is_listed = self._is_host_allowed(target.host, target.port)
        if not is_listed and target.address is None and _is_internal_name(target.host):
            raise ToolRefused(f"{target.host} is an internal host name. {_BLOCKED}")
        if (
            not is_listed
            and target.port in _NON_HTTP_PORTS
            and not self._is_address_allowed(target.address, target.port)
        ):
            raise ToolRefused(
                f"Port {target.port} is not an HTTP port. "
                f"To allow it, list {target.host}:{target.port} in OPPOSABLE_PRIVATE_HOSTS."
            )
        return target

    def check_address(self, address: Address, host: str, port: int) -> None:
        """Raise `ToolRefused` where a tool may not connect to an address of `host`."""
        kind = classify_address(address)
        if kind == "public" or self._is_address_allowed(address, port):
            return
        if kind in KINDS_ALLOWED_BY_NAME and self._is_host_allowed(host, port):
            return
        subject = f"{host} is" if str(address) == host else f"{host} leads to {address},"
        raise ToolRefused(f"{subject} a {kind} address. {_BLOCKED}")

    def can_connect(self, address: Address, port: int) -> bool:
        """Whether a socket to this address is allowed, for any name."""
        kind = classify_address(address)
        if kind == "public" or self._is_address_allowed(address, port):
            return True
        allows_names = any(
            isinstance(target.host_or_network, str) and target.port in (None, port) for target in self._allowed_targets
        )
        return kind in KINDS_ALLOWED_BY_NAME and allows_names

    def _is_host_allowed(self, host: str, port: int) -> bool:
        return any(target.host_or_network == host and target.port in (None, port) for target in self._allowed_targets)

    def _is_address_allowed(self, address: Address | None, port: int) -> bool:
        return address is not None and any(
            not isinstance(target.host_or_network, str)
            and target.port in (None, port)
            and target.host_or_network.version == address.version
            and address in target.host_or_network
            for target in self._allowed_targets
        )


def parse_allowed_hosts(entries: Iterable[str]) -> tuple[str, ...]:
    """Return hosts (`host` or `host:port`) in normal form.

    An invalid entry raises `BadInput`.
    """
    hosts = []
    for entry in entries:
        target = _parse_target(entry)
        if not isinstance(target.host_or_network, str) and target.host_or_network.num_addresses != 1:
            raise BadInput(f"{entry!r} is a network. List single hosts, as host or host:port.")
        host = (
            target.host_or_network
            if isinstance(target.host_or_network, str)
            else str(target.host_or_network.network_address)
        )
        hosts.append(host if target.port is None else f"{host}:{target.port}")
    return tuple(hosts)


def _parse_target(entry: str) -> _AllowedTarget:
    text = entry.strip()
    try:
        return _AllowedTarget(ip_network(text, strict=False), None)
    except ValueError:
        pass
    if "://" in text:
        raise BadInput(f"{entry!r} is a URL. Write its host alone, as host or host:port.")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, ""
    if colon and port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise BadInput(f"{entry!r} is not a target: {port!r} is not a port number. {_TARGET_FORMS}")
    try:
        name, address = parse_host(host)
    except ToolRefused as error:
        raise BadInput(f"{entry!r} is not a target. {_TARGET_FORMS}") from error
    return _AllowedTarget(name if address is None else ip_network(address), int(port) if port else None)


_TARGET_FORMS = "A target is a host, host:port, an address, or a network such as 10.1.0.0/16."


def _is_internal_name(host: str) -> bool:
    return host in METADATA_HOSTS or any(
        host == suffix or host.endswith(f".{suffix}") for suffix in INTERNAL_HOST_SUFFIXES
    )
