"""Which request headers may be set, and with what."""

import re

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NOT_IN_A_LINE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_OF_THE_CONNECTION = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
)


def is_token(name: str) -> bool:
    """Whether `name` can stand as the name of a header or a cookie."""
    return _TOKEN.fullmatch(name) is not None


def may_be_set(name: str) -> bool:
    """Whether a header of this name can be set: a token, and none that frames or routes the request."""
    return is_token(name) and name.lower() not in _OF_THE_CONNECTION


def is_one_line(value: str) -> bool:
    """Whether `value` can be a header's value: no line break, no other control character, no half character."""
    return _NOT_IN_A_LINE.search(value) is None
