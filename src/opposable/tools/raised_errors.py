"""Errors that the code of a tool raises: their text, and whether they mean that a server cannot be reached."""

import errno
import socket
from collections.abc import Iterator

_UNREACHABLE_ERRNOS = frozenset(
    {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.ETIMEDOUT}
)

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
    return any(_says_unreachable(cause) for cause in _iterate_causes(error))


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, at most ten: the chain may be a circle."""
    cause: object = error
    for _ in range(10):
        if not isinstance(cause, BaseException):
            return
        yield cause
        cause = cause.__cause__ or getattr(cause, "reason", None)  # `URLError` has its cause in `reason`


def _says_unreachable(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | socket.gaierror):
        return True
    if isinstance(error, OSError) and error.errno in _UNREACHABLE_ERRNOS:
        return True
    return any(
        f"{base.__module__.partition('.')[0]}.{base.__name__}" in _CONNECTION_ERRORS for base in type(error).__mro__
    )
