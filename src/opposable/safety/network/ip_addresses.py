"""Classification of IP addresses: public, private, loopback and others."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

METADATA_ADDRESSES = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
            *("fd00:ec2::254", "fd20:ce::254"),
        ),
    )
)
"""Addresses of cloud metadata services; 168.63.129.16 looks public but belongs to the platform."""

_NON_PUBLIC_NETWORKS = tuple(
    (ip_network(text), kind)
    for text, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "special-purpose"),  # Python 3.11 treats parts of it as global
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "tunnel"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("fc00::/7", "private"),
        ("ff00::/8", "multicast"),
        ("2002::/16", "tunnel"),
        ("2001::/32", "tunnel"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
    )
)
_NAT64_PREFIX = ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ip_network("2000::/3")


def classify_address(address: Address) -> str:
    """Return "public", or the kind of an address that is not public.

    Other kinds are "loopback", "private", "shared", "link-local", "metadata", "tunnel" and more. An IPv4 address
    inside an IPv6 address (mapped, or translated by NAT64) is classified itself. Tunnels are not public.
    """
    if address in METADATA_ADDRESSES:
        return "metadata"
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return "link-local"
        if address.ipv4_mapped is not None:
            return classify_address(address.ipv4_mapped)
        if address in _NAT64_PREFIX:
            return classify_address(IPv4Address(int(address) & 0xFFFFFFFF))
    for network, kind in _NON_PUBLIC_NETWORKS:
        if address.version == network.version and address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "reserved"
    return "public" if address.is_global else "reserved"
