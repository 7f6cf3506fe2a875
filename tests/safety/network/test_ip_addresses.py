"""What an address is."""

from ipaddress import ip_address

import pytest

from opposable.safety.network.ip_addresses import classify_address


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("1.1.1.1", "public"),
        ("223.5.5.5", "public"),
        ("100.63.255.255", "public"),
        ("2606:4700:4700::1111", "public"),
        ("::ffff:1.1.1.1", "public"),
        ("64:ff9b::1.1.1.1", "public"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("127.0.0.1", "loopback"),
        ("127.255.0.1", "loopback"),
        ("100.64.0.1", "shared"),
        ("169.254.1.1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "metadata"),
        ("192.0.0.9", "special-purpose"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "tunnel"),
        ("198.18.0.1", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("2606:4700::1%eth0", "link-local"),
        ("fec0::1", "private"),
        ("fd12::1", "private"),
        ("fd00:ec2::254", "metadata"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("2002:7f00:1::", "tunnel"),
        ("2001:0:1::1", "tunnel"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::a00:1", "private"),
        ("64:ff9b:1::1", "reserved"),
        ("::127.0.0.1", "reserved"),
        ("100::1", "reserved"),
    ],
)
def test_addresses_are_classified(address, kind):
    assert classify_address(ip_address(address)) == kind
