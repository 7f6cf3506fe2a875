"""Echo returns its text."""

import pytest

from opposable.builtin_tools.echo import echo


@pytest.mark.anyio
async def test_echo_returns_the_text():
    assert await echo("hello 你好\n") == "hello 你好\n"
