"""Calls made without the service are recorded in the store."""

import pytest

from opposable.app.default_store import open_default_store
from opposable.app.execution_log import open_execution_log
from opposable.settings import Settings
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


def greet(name: str, password: str = "") -> str:
    """Greet a person."""
    return f"Hello {name}"


async def test_calls_are_recorded_without_their_secrets(tmp_path):
    library = ToolLibrary([greet])
    arguments = {"name": "Ada", "password": "s3cr3t-value"}
    async with open_default_store(Settings(_env_file=None, home=tmp_path)) as store:
        async with open_execution_log(store, library) as record:
            record("greet", arguments, await library.call("greet", arguments))
            record("no_such_tool", {}, await library.call("no_such_tool", {}))
        executions = (await store.executions.list()).items
    assert sorted((one.tool_id, one.arguments, one.failure) for one in executions) == [
        ("greet", {"name": "Ada", "password": "[redacted]"}, None),
        ("no_such_tool", {}, "unknown_tool"),
    ]


async def test_without_a_store_nothing_is_recorded():
    library = ToolLibrary([greet])
    async with open_execution_log(None, library) as record:
        record("greet", {"name": "Ada"}, await library.call("greet", {"name": "Ada"}))
