"""Reading the lines of a response."""

import time
from types import SimpleNamespace

import pytest

from opposable.safety.network.response_body import iter_lines

pytestmark = pytest.mark.anyio


async def read_lines(*chunks, max_bytes=10_000_000):
    async def iter_any():
        for chunk in chunks:
            yield chunk

    response = SimpleNamespace(content=SimpleNamespace(iter_any=iter_any))
    return [line async for line in iter_lines(response, max_bytes)]


async def test_lines_may_be_split_anywhere():
    assert await read_lines(b"a", b"b\r", b"\nc\n\nd\n", b"", b"e", b"f") == [b"ab\r\n", b"c\n", b"\n", b"d\n", b"ef"]
    assert await read_lines(b"a\nbc", b"d\ne", max_bytes=3) == [b"a\n", b"bc"]


async def test_a_long_line_in_small_pieces_is_read_quickly():
    started = time.process_time()
    [line] = await read_lines(*[b"x" * 1_000] * 3_000)
    assert (len(line), time.process_time() - started < 2) == (3_000_000, True)
