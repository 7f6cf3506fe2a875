"""Where tools may go: the public Internet, and what the owner allows beside it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
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
"""What a host that is allowed by name may resolve to; link-local and metadata addresses must be allowed as addresses."""

# Ports of services that are not HTTP and can be made to act by an HTTP request's bytes (as browsers refuse them).
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
    """One entry of the owner's list: a name or a network, on one port or on all (None)."""

    host_or_network: str | IPv4Network | IPv6Network
    port: int | None


@dataclass(frozen=True)
class SsrfGuard:
    """Says of every URL and every address whether a tool may go there.

    `allow` is the owner's list of targets beside the public Internet: `host`, `host:port`, an address, an address with
    a port (`[::1]:8080`), or a network (`10.1.0.0/16`). Raises: `BadInput` for an entry that is none of these.
    """

    allow: tuple[str, ...] = ()
    _allowed_targets: tuple[_AllowedTarget, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed_targets", tuple(_parse_target(entry) for entry in self.allow))

    def check_url(self, url: str) -> UrlTarget:
        """Where a URL leads, if a tool may go there as far as the URL itself tells. Raises: `ToolRefused`."""
        target = parse_url(url)
        if target.address is not None:
            self.check_address(target.address, target.host, target.port)
        listed = self._is_host_allowed(target.host, target.port)
        if not listed and target.address is None and _is_internal_name(target.host):
            raise ToolRefused(f"{target.host} is a name of an inner network; the owner can allow it by name.")
        if not listed and target.port in _NON_HTTP_PORTS and not self._is_address_allowed(target.address, target.port):
            raise ToolRefused(
                f"Port {target.port} does not belong to HTTP; the owner can allow {target.host}:{target.port}."
            )
        return target

    def check_address(self, address: Address, host: str, port: int) -> None:
        """Refuse an address that a tool may not be connected to. Raises: `ToolRefused`, saying what it is."""
        kind = classify_address(address)
        if kind == "public" or self._is_address_allowed(address, port):
            return
        if kind in KINDS_ALLOWED_BY_NAME and self._is_host_allowed(host, port):
            return
        led = f"{host} is" if str(address) == host else f"{host} leads to {address},"
        raise ToolRefused(f"{led} a {kind} address; tools reach the public Internet and what the owner allows.")

    def can_connect(self, address: Address, port: int) -> bool:
        """Whether a socket may be opened there at all, whatever name led to it."""
        kind = classify_address(address)
        if kind == "public" or self._is_address_allowed(address, port):
            return True
        named = any(isinstance(one.host_or_network, str) and one.port in (None, port) for one in self._allowed_targets)
        return kind in KINDS_ALLOWED_BY_NAME and named

    def _is_host_allowed(self, host: str, port: int) -> bool:
        return any(one.host_or_network == host and one.port in (None, port) for one in self._allowed_targets)

    def _is_address_allowed(self, address: Address | None, port: int) -> bool:
        return address is not None and any(
            not isinstance(one.host_or_network, str)
            and one.port in (None, port)
            and one.host_or_network.version == address.version
            and address in one.host_or_network
            for one in self._allowed_targets
        )


class GuardedResolver(AbstractResolver):
    """A resolver whose answers are vetted: one address that is not allowed, and none is given."""

    def __init__(self, guard: SsrfGuard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._resolver = resolver

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        """The addresses of a host, each allowed. Raises: `ToolRefused`; `ToolUnavailable` when there is none."""
        try:
            found = await self._resolver.resolve(host, port, family)
        except OSError as error:
            raise ToolUnavailable(f"There is no host {host}, or its name cannot be looked up now.") from error
        for one in found:
            self._guard.check_address(ip_address(one["host"]), host, port)
        return found

    async def close(self) -> None:
        """Close the resolver within."""
        await self._resolver.close()


def parse_allowed_hosts(entries: Iterable[str]) -> tuple[str, ...]:
    """Entries of a list of hosts (`host` or `host:port`), told plainly. Raises: `BadInput`."""
    told = []
    for entry in entries:
        one = _parse_target(entry)
        if not isinstance(one.host_or_network, str) and one.host_or_network.num_addresses != 1:
            raise BadInput(f"{entry!r} is a network; here each entry is a host, or host:port.")
        host = one.host_or_network if isinstance(one.host_or_network, str) else str(one.host_or_network.network_address)
        told.append(host if one.port is None else f"{host}:{one.port}")
    return tuple(told)


def _parse_target(entry: str) -> _AllowedTarget:
    text = entry.strip()
    try:
        return _AllowedTarget(ip_network(text, strict=False), None)
    except ValueError:
        pass
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, ""
    if colon and port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise BadInput(f"{entry!r} is no target: {port!r} is no port. {_TARGET_FORMS}")
    try:
        name, address = parse_host(host)
    except ToolRefused as error:
        raise BadInput(f"{entry!r} is no target. {_TARGET_FORMS}") from error
    return _AllowedTarget(name if address is None else ip_network(address), int(port) if port else None)


_TARGET_FORMS = "A target is a host, host:port, an address, or a network such as 10.1.0.0/16."


def _is_internal_name(host: str) -> bool:
    return host in METADATA_HOSTS or any(
        host == suffix or host.endswith(f".{suffix}") for suffix in INTERNAL_HOST_SUFFIXES
    )
