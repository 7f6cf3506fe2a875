"""Whatever a tool raises is a failed result; errors of a connection mean that its server is unavailable."""

import socket
import sys
import urllib.error
from functools import partial

import aiohttp
import pytest

from opposable.tools.circuit_breaker import CircuitBreakerOptions
from opposable.tools.function import FunctionTool, tool
from opposable.tools.library import ToolLibrary
from opposable.tools.retries import ToolRetryOptions

pytestmark = pytest.mark.anyio


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class LoopingError(Exception):
    """An error that is its own reason."""

    @property
    def reason(self) -> "LoopingError":
        return self


class PanicException(BaseException):
    """Like the error of a panic in the Rust code of a package, such as polars."""


def raise_error(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("fail", "content"),
    [
        (partial(sys.exit, 3), "act failed: SystemExit: 3"),
        (partial(raise_error, KeyboardInterrupt()), "act failed: KeyboardInterrupt"),
        (
            partial(raise_error, PanicException("index out of bounds")),
            "act failed: PanicException: index out of bounds",
        ),
        (partial(raise_error, MuteError()), "act failed: MuteError"),
        (partial(raise_error, LoopingError("x")), "act failed: LoopingError: x"),
    ],
)
async def test_any_error_is_a_failed_result(kind, fail, content):
    def act() -> None:
        """Act."""
        fail()

    async def act_async() -> None:
        """Act."""
        fail()

    library = ToolLibrary([FunctionTool(act if kind == "sync" else act_async, tool_id="act")])
    result = await library.call("act", {})
    assert (result.failure, result.content) == ("failed", content)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_stop_iteration_ends_the_call_at_once(kind):
    def act() -> int:
        """Act."""
        return next(iter(()))

    async def act_async() -> int:
        """Act."""
        return next(iter(()))

    library = ToolLibrary([FunctionTool(act if kind == "sync" else act_async, tool_id="act")], timeout=5)
    result = await library.call("act", {})
    assert result.failure == "failed"
    assert "raised StopIteration" in result.content


def wrap(error: Exception) -> Exception:
    """Return an error that a function raised from another."""
    outer = ValueError("no rates today")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "unavailable"),
        (socket.gaierror(-2, "Name or service not known"), "unavailable"),
        (OSError(113, "No route to host"), "unavailable"),
        (urllib.error.URLError(ConnectionResetError(104, "reset")), "unavailable"),
        (aiohttp.ServerDisconnectedError(), "unavailable"),
        (wrap(ConnectionResetError(104, "reset")), "unavailable"),
        (urllib.error.HTTPError("http://h", 404, "Not Found", None, None), "failed"),
        (FileNotFoundError(2, "No such file"), "failed"),
        (PermissionError(13, "Permission denied"), "failed"),
        (ValueError("x"), "failed"),
    ],
)
async def test_connection_errors_are_retried_and_open_the_circuit(error, failure):
    calls = []

    @tool(idempotent=True)
    def fetch() -> None:
        """Fetch."""
        calls.append(1)
        raise error

    library = ToolLibrary(
        [fetch],
        retries=ToolRetryOptions(max_attempts=2, first_wait_seconds=0, max_wait_seconds=0),
        circuit_breaker=CircuitBreakerOptions(min_calls=2),
    )
    result = await library.call("fetch", {})
    is_down = failure == "unavailable"
    assert (result.failure, len(calls)) == (failure, 2 if is_down else 1)
    assert library.get_health("fetch").state == "ok"  # the attempts of a call count once
    await library.call("fetch", {})
    assert library.get_health("fetch").state == ("open" if is_down else "ok")


def create_httpx_error(name):
    return type(name, (Exception,), {"__module__": "httpx"})("no answer")


@pytest.mark.parametrize(
    ("error", "failure", "is_unknown"),
    [
        (ConnectionResetError("reset"), "unavailable", True),
        (ConnectionRefusedError("refused"), "unavailable", False),
        (socket.gaierror(-2, "unknown name"), "unavailable", False),
        (create_httpx_error("ReadTimeout"), "timeout", True),
        (create_httpx_error("NetworkError"), "unavailable", True),
        (create_httpx_error("ConnectError"), "failed", False),
        (TimeoutError("slow"), "timeout", True),
        (ValueError("wrong"), "failed", False),
    ],
)
async def test_a_call_may_have_taken_effect_unless_nothing_was_sent(error, failure, is_unknown):
    def pay() -> None:
        """Pay."""
        raise error

    result = await ToolLibrary([pay]).call("pay", {})
    assert (result.failure, result.outcome_unknown) == (failure, is_unknown)
    assert ("Its outcome is unknown" in result.content) == is_unknown
    result = await ToolLibrary([FunctionTool(pay, idempotent=True)]).call("pay", {})
    assert (result.failure, result.outcome_unknown) == (failure, False)
