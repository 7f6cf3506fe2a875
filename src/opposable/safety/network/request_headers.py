"""Which request headers may be set, and with what."""

import re

_TOKEN_PATTERN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FORBIDDEN_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_CONNECTION_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
)


def is_token(name: str) -> bool:
    """Whether `name` can stand as the name of a header or a cookie."""
    return _TOKEN_PATTERN.fullmatch(name) is not None


def is_settable_header(name: str) -> bool:
    """Whether a header of this name can be set: a token, and none that frames or routes the request."""
    return is_token(name) and name.lower() not in _CONNECTION_HEADERS


def is_valid_header_value(value: str) -> bool:
    """Whether `value` can be a header's value: no line break, no other control character, no half character."""
    return _FORBIDDEN_IN_VALUE.search(value) is None
