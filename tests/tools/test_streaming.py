"""Tools whose results come in pieces."""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time

import pytest

from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


async def count_async(to: int):
    """Count."""
    for n in range(to):
        yield f"{n} "
        await asyncio.sleep(0)


def count(to: int):
    """Count."""
    for n in range(to):
        yield f"{n} "


def rows(to: int):
    """Rows."""
    for n in range(to):
        yield {"n": n}


KINDS = [
    (count_async, "0 1 2 ", ["0 ", "1 ", "2 "]),
    (count, "0 1 2 ", ["0 ", "1 ", "2 "]),
    (rows, [{"n": 0}, {"n": 1}, {"n": 2}], ['{"n":0}', '{"n":1}', '{"n":2}']),
]


@pytest.mark.parametrize(("function", "data", "deltas"), KINDS)
async def test_each_delta_is_reported_and_the_result_joins_them(function, data, deltas):
    heard = []
    library = ToolLibrary([function])
    result = await library.call(function.__name__, {"to": 3}, CallContext(report=heard.append))
    await asyncio.sleep(0)
    assert (result.data, heard) == (data, deltas)
    assert (await library.call(function.__name__, {"to": 3}, NO_CONTEXT)).data == data
    assert library.find_registered_tool(function.__name__).streams


@pytest.mark.parametrize("function", [count_async, count])
async def test_no_deltas_are_an_empty_text_and_invalid_arguments_are_reported(function):
    library = ToolLibrary([function])
    assert (await library.call(function.__name__, {"to": 0})).data == ""
    assert (await library.call(function.__name__, {"to": "x"})).failure == "invalid_arguments"


@pytest.mark.parametrize(
    ("iterator", "data"),
    [
        (zip([1, 2], "ab", strict=True), [(1, "a"), (2, "b")]),
        (map(str, [1, 2]), ["1", "2"]),
        (filter(None, [0]), []),
    ],
)
async def test_a_returned_iterator_becomes_a_list(iterator, data):
    assert await FunctionTool(lambda: iterator, tool_id="pairs").run({}, NO_CONTEXT) == data


async def test_a_time_out_stops_a_returned_iterator():
    read: list[int] = []

    def wait(number: int) -> None:
        read.append(number)
        time.sleep(0.01)

    endless = FunctionTool(lambda: map(wait, itertools.count()), tool_id="endless", timeout=0.1)
    assert (await ToolLibrary([endless]).call("endless", {})).failure == "timeout"
    await asyncio.sleep(0.05)
    count = len(read)
    await asyncio.sleep(0.1)
    assert len(read) == count


async def test_a_generator_that_raises_fails_after_its_reported_deltas():
    def half():
        """Half."""
        yield "a"
        raise ValueError("no more")

    heard = []
    result = await ToolLibrary([half]).call("half", {}, CallContext(report=heard.append))
    assert (result.failure, result.content, heard) == ("failed", "half failed: ValueError: no more", ["a"])


async def test_a_call_cancelled_in_mid_stream_closes_the_asynchronous_generator():
    closed, heard = [], asyncio.Event()

    async def endless():
        """Go on."""
        try:
            while True:
                yield "tick"
                await asyncio.sleep(0.001)
        finally:
            closed.append(True)

    running = asyncio.create_task(ToolLibrary([endless]).call("endless", {}, CallContext(report=lambda _: heard.set())))
    await heard.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert closed == [True]


async def test_a_call_cancelled_in_mid_stream_closes_the_generator_in_its_thread():
    closed, heard = threading.Event(), asyncio.Event()
    step = threading.Event()

    def endless():
        """Go on."""
        try:
            while True:
                yield "tick"
                step.wait(0.005)
        finally:
            closed.set()

    running = asyncio.create_task(ToolLibrary([endless]).call("endless", {}, CallContext(report=lambda _: heard.set())))
    await heard.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(closed.wait, 5)


async def test_a_time_out_closes_the_generator_too():
    closed = []

    async def slow():
        """Slow."""
        try:
            yield "a"
            await asyncio.sleep(30)
        finally:
            closed.append(True)

    result = await ToolLibrary([FunctionTool(slow, timeout=0.05)]).call("slow", {})
    assert (result.failure, closed) == ("timeout", [True])


async def test_methods_that_yield_and_functions_that_take_the_context_stream_and_others_do_not():
    class Feed:
        def news(self):
            """News."""
            yield "one"

        def old(self) -> str:
            """Old."""
            return "two"

    def reporting(context: CallContext) -> str:
        """Report."""
        return "x"

    feed = Feed()
    library = ToolLibrary([feed.news, feed.old, reporting])
    assert [library.find_registered_tool(name).streams for name in ("news", "old", "reporting")] == [True, False, True]
    spec = FunctionToolSpec(tool_id="other", module_path="m", mode="streamable")
    library.register(spec, [FunctionTool(feed.old, tool_id="other")])
    assert library.find_registered_tool("other").streams
    assert (await library.call("news", {})).content == "one"


FORKING_PROGRAM = """
import asyncio, os
from opposable import ToolLibrary

def double(x: int) -> int:
    return 2 * x

library = ToolLibrary([double], timeout=5)
print(asyncio.run(library.call("double", {"x": 1})).content, flush=True)
if os.fork() == 0:
    print(asyncio.run(library.call("double", {"x": 2})).content, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_runs_sync_tools():
    program = [sys.executable, "-W", "ignore", "-c", FORKING_PROGRAM]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "2\n4\n"
