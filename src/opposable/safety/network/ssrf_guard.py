"""Where tools may go: the public Internet, and what the owner allows beside it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from opposable.domain.errors import BadInput, ToolRefused, ToolUnavailable
from opposable.safety.network.ip_addresses import Address, kind_of
from opposable.safety.network.url_parsing import Target, host_of, target_of

METADATA_NAMES = frozenset(
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
INNER_SUFFIXES = ("localhost", "local", "localdomain", "internal", "intranet", "home.arpa", "in-addr.arpa", "ip6.arpa")
OPEN_BY_NAME = frozenset({"public", "loopback", "private", "shared"})
"""What a host that is allowed by name may resolve to; link-local and metadata addresses must be allowed as addresses."""

# Ports of services that are not HTTP and can be made to act by an HTTP request's bytes (as browsers refuse them).
_NOT_HTTP = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515),
        *(526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049),
        *(3306, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697),
        *(10080, 11211),
    )
)


@dataclass(frozen=True, slots=True)
class _Allowed:
    """One entry of the owner's list: a name or a network, on one port or on all (None)."""

    what: str | IPv4Network | IPv6Network
    port: int | None


@dataclass(frozen=True)
class Guard:
    """Says of every URL and every address whether a tool may go there.

    `allow` is the owner's list of targets beside the public Internet: `host`, `host:port`, an address, an address with
    a port (`[::1]:8080`), or a network (`10.1.0.0/16`). Raises: `BadInput` for an entry that is none of these.
    """

    allow: tuple[str, ...] = ()
    _allowed: tuple[_Allowed, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", tuple(_read(entry) for entry in self.allow))

    def target(self, url: str) -> Target:
        """Where a URL leads, if a tool may go there as far as the URL itself tells. Raises: `ToolRefused`."""
        target = target_of(url)
        if target.address is not None:
            self.vet(target.address, target.host, target.port)
        listed = self._by_name(target.host, target.port)
        if not listed and target.address is None and _inner(target.host):
            raise ToolRefused(f"{target.host} is a name of an inner network; the owner can allow it by name.")
        if not listed and target.port in _NOT_HTTP and not self._by_address(target.address, target.port):
            raise ToolRefused(
                f"Port {target.port} does not belong to HTTP; the owner can allow {target.host}:{target.port}."
            )
        return target

    def vet(self, address: Address, host: str, port: int) -> None:
        """Refuse an address that a tool may not be connected to. Raises: `ToolRefused`, saying what it is."""
        kind = kind_of(address)
        if kind == "public" or self._by_address(address, port):
            return
        if kind in OPEN_BY_NAME and self._by_name(host, port):
            return
        led = f"{host} is" if str(address) == host else f"{host} leads to {address},"
        raise ToolRefused(f"{led} a {kind} address; tools reach the public Internet and what the owner allows.")

    def may_dial(self, address: Address, port: int) -> bool:
        """Whether a socket may be opened there at all, whatever name led to it."""
        kind = kind_of(address)
        if kind == "public" or self._by_address(address, port):
            return True
        named = any(isinstance(one.what, str) and one.port in (None, port) for one in self._allowed)
        return kind in OPEN_BY_NAME and named

    def _by_name(self, host: str, port: int) -> bool:
        return any(one.what == host and one.port in (None, port) for one in self._allowed)

    def _by_address(self, address: Address | None, port: int) -> bool:
        return address is not None and any(
            not isinstance(one.what, str)
            and one.port in (None, port)
            and one.what.version == address.version
            and address in one.what
            for one in self._allowed
        )


class VettingResolver(AbstractResolver):
    """A resolver whose answers are vetted: one address that is not allowed, and none is given."""

    def __init__(self, guard: Guard, inner: AbstractResolver) -> None:
        self._guard = guard
        self._inner = inner

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        """The addresses of a host, each allowed. Raises: `ToolRefused`; `ToolUnavailable` when there is none."""
        try:
            found = await self._inner.resolve(host, port, family)
        except OSError as error:
            raise ToolUnavailable(f"There is no host {host}, or its name cannot be looked up now.") from error
        for one in found:
            self._guard.vet(ip_address(one["host"]), host, port)
        return found

    async def close(self) -> None:
        """Close the resolver within."""
        await self._inner.close()


def allowed_hosts(entries: Iterable[str]) -> tuple[str, ...]:
    """Entries of a list of hosts (`host` or `host:port`), told plainly. Raises: `BadInput`."""
    told = []
    for entry in entries:
        one = _read(entry)
        if not isinstance(one.what, str) and one.what.num_addresses != 1:
            raise BadInput(f"{entry!r} is a network; here each entry is a host, or host:port.")
        host = one.what if isinstance(one.what, str) else str(one.what.network_address)
        told.append(host if one.port is None else f"{host}:{one.port}")
    return tuple(told)


def _read(entry: str) -> _Allowed:
    text = entry.strip()
    try:
        return _Allowed(ip_network(text, strict=False), None)
    except ValueError:
        pass
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, ""
    if colon and port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise BadInput(f"{entry!r} is no target: {port!r} is no port. {_FORMS}")
    try:
        name, address = host_of(host)
    except ToolRefused as error:
        raise BadInput(f"{entry!r} is no target. {_FORMS}") from error
    return _Allowed(name if address is None else ip_network(address), int(port) if port else None)


_FORMS = "A target is a host, host:port, an address, or a network such as 10.1.0.0/16."


def _inner(host: str) -> bool:
    return host in METADATA_NAMES or any(host == suffix or host.endswith(f".{suffix}") for suffix in INNER_SUFFIXES)
