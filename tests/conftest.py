"""What every test may use."""

import gc
import signal
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
SLOW_FIRST = ("web/console", "service", "durable", "test_readme.py", "web/telemetry", "web/api", "cli")
"""Files that wait for browsers and processes. Last of all, one worker would run them while the others are idle."""

gc.disable()  # until all tests are collected: nothing of them is garbage

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# A shell starts background jobs with SIGINT ignored, and programs inherit that: the tests that stop programs need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup: the tests still ignore it
    signal.signal(signal.SIGHUP, lambda number, frame: None)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Replace halves of characters in reports, such as those of a log: they would end the worker that sends them."""
    return _replace_surrogates((yield))


def _replace_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return type(value)(map(_replace_surrogates, value))
        case dict():
            return {key: _replace_surrogates(item) for key, item in value.items()}
    return value


_internal_errors: list[str] = []


def pytest_internalerror(excrepr: object) -> None:
    """Remember an error of pytest itself."""
    _internal_errors.append(str(excrepr))


def pytest_unconfigure() -> None:
    """Print the cause again: that of a worker is far above, before the error that the worker has ended.

    Frozen objects are collected again: libraries would report them as leaks when the process ends.
    """
    gc.unfreeze()
    if _internal_errors:
        print(f"The first internal error:\n{_internal_errors[0][-4000:]}")


@pytest.fixture
def anyio_backend() -> str:
    """The loop asynchronous tests run on."""
    return "asyncio"


def pytest_collection_finish() -> None:
    """Exclude the modules and tests from garbage collection: each full collection would go through all of them."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow files; the order within them and of the others is unchanged."""

    @cache
    def get_rank(path: Path) -> int:
        is_below = [path.is_relative_to(TESTS / slow) for slow in SLOW_FIRST]
        return is_below.index(True) if True in is_below else len(SLOW_FIRST)

    items.sort(key=lambda item: get_rank(item.path))
