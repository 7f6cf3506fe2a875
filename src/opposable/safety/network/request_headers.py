"""Validation of request headers."""

import re

_TOKEN_PATTERN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FORBIDDEN_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_CONNECTION_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
)


def is_token(name: str) -> bool:
    """Whether `name` is a valid name of a header or cookie."""
    return _TOKEN_PATTERN.fullmatch(name) is not None


def is_settable_header(name: str) -> bool:
    """Whether a tool may set this header.

    Headers that frame or route the request are not settable.
    """
    return is_token(name) and name.lower() not in _CONNECTION_HEADERS


def is_valid_header_value(value: str) -> bool:
    """Whether `value` has no line breaks, control characters or surrogates."""
    return _FORBIDDEN_IN_VALUE.search(value) is None
