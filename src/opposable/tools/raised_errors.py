"""Errors that the code of a tool raises: their text, and whether a server was reached or did not answer in time."""

import errno
import socket
from collections.abc import Iterator

_UNREACHABLE_ERRNOS = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})

_CONNECTION_ERRORS = frozenset(
    {
        "aiohttp.ClientConnectionError",
        "asyncpg.ConnectionDoesNotExistError",
        "httpx.NetworkError",
        "httpx2.NetworkError",
        "psycopg.OperationalError",
        "redis.ConnectionError",
        "requests.ConnectionError",
        "urllib3.NewConnectionError",
        "valkey.ConnectionError",
    }
)
"""Errors of client libraries, as top package and class. Their cause is not always set."""

_TIMEOUT_ERRORS = frozenset(
    {"httpx.ReadTimeout", "httpx.WriteTimeout", "httpx2.ReadTimeout", "httpx2.WriteTimeout", "requests.ReadTimeout"}
    | {"urllib3.ReadTimeoutError"}
)
"""Errors of client libraries after a request whose answer did not come in time."""

_NOT_SENT_ERRORS = frozenset(
    {
        "aiohttp.ClientConnectorError",
        "httpx.ConnectError",
        "httpx2.ConnectError",
        "requests.ConnectTimeout",
        "urllib3.ConnectTimeoutError",
        "urllib3.NewConnectionError",
    }
)
"""Errors of client libraries that could not connect, so that nothing was sent."""


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an error, whose `__str__` may fail; those of its parts for a group."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(describe_error, error.exceptions))
    return f"{type(error).__name__}: {get_error_text(error)}".strip(": ")


def get_error_text(error: BaseException) -> str:
    """Return `str(error)`, or "" if that fails: the class may come from a tool's author."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the code of a tool's author
        return ""


def is_connection_error(error: BaseException) -> bool:
    """Return whether the error, or one that caused it, says that a server cannot be reached."""
    return any(
        isinstance(cause, ConnectionError)
        or _is_unreachable(cause)
        or getattr(cause, "errno", None) == errno.ETIMEDOUT
        or _is_any(cause, _CONNECTION_ERRORS)
        for cause in _iterate_causes(error)
    )


def is_timeout_error(error: BaseException) -> bool:
    """Return whether the error says that there was no answer in time."""
    return isinstance(error, TimeoutError) or _is_any(error, _TIMEOUT_ERRORS)


def may_have_been_sent(error: BaseException) -> bool:
    """Return whether a request may have reached the server: no cause of a connection error rules it out."""
    return not any(
        isinstance(cause, ConnectionRefusedError) or _is_unreachable(cause) or _is_any(cause, _NOT_SENT_ERRORS)
        for cause in _iterate_causes(error)
    )


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, at most ten: the chain may be a circle."""
    cause: object = error
    for _ in range(10):
        if not isinstance(cause, BaseException):
            return
        yield cause
        # `URLError` has its cause in `reason`, and `requests.ConnectionError` in its arguments.
        cause = cause.__cause__ or getattr(cause, "reason", None) or next(iter(cause.args), None)


def _is_unreachable(error: BaseException) -> bool:
    return isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno in _UNREACHABLE_ERRNOS)


def _is_any(error: BaseException, names: frozenset[str]) -> bool:
    """Return whether the class of an error, or a base of it, is one of these, as top package and class."""
    return any(f"{base.__module__.partition('.')[0]}.{base.__name__}" in names for base in type(error).__mro__)
