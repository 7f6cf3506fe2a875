"""Headers that hold a literal secret are rejected."""

import pytest

from opposable.domain.errors import BadInput
from opposable.safety.literal_secrets import check_headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer s3cr3t-value"),
        ("authorization", "Basic dXNlcjpzM2NyM3Q="),
        ("X-API-Key", "s3cr3t-value"),
        ("Ocp-Apim-Subscription-Key", "s3cr3t-value"),
        ("PRIVATE-TOKEN", "s3cr3t-value"),
        ("Cookie", "session=s3cr3t-value"),
        ("Authorization", "Bearer s3cr3t-value env:NAME"),
        ("X-Anything", "sk-abcdefghijklmnop1234"),
    ],
)
def test_a_literal_secret_is_rejected_without_showing_it(name, value):
    with pytest.raises(BadInput, match=r"shop: the header .* holds a secret.* write env:NAME") as raised:
        check_headers({"Accept": "text/plain", name: value}, "shop")
    assert name in str(raised.value)
    assert value not in str(raised.value)


def test_references_and_other_headers_are_accepted():
    check_headers(
        {
            "Authorization": "Bearer env:SHOP_TOKEN",
            "X-API-Key": "env:SHOP_KEY",
            "Cookie": "",
            "Accept": "application/json",
            "X-Auth-Type": "oauth",
            "X-Team": "数据",
        },
        "shop",
    )
