"""The failure memory of the command line is stored, and the store is created on first use."""

import pytest
from tests.app.settings import create_settings

from opposable.app.default_store import open_existing_store
from opposable.app.lazy_failure_store import open_failure_memory
from opposable.app.tool_factory import create_builtin_library

pytestmark = pytest.mark.anyio


async def test_the_next_command_knows_earlier_failures_and_the_store_is_created_on_the_first(tmp_path):
    settings = create_settings(tmp_path)
    library = create_builtin_library(settings)
    async with open_failure_memory(settings) as failure_memory:
        assert (await failure_memory.get_patterns(library)).get_failures("file_search") == ()
    async with open_existing_store(settings) as store:
        assert store is None
    async with open_failure_memory(settings) as failure_memory:
        failure = failure_memory.record_failure(
            "file_search", "", "failed", {"root_dir": "logg"}, "There is no 'logg'."
        )
        failure_memory.memory.correct(failure, {"given": {"root_dir": "logg"}, "right": {"root_dir": "logs"}})
    async with open_existing_store(settings) as store:
        assert store is not None
    async with open_failure_memory(settings) as failure_memory:
        for _ in range(20):  # on a busy machine the memory may be loaded too late for a run
            if warnings := (await failure_memory.get_patterns(library)).get_warnings("file_search", "en"):
                break
            failure_memory.memory.invalidate()
    assert warnings == 'Known from before: root_dir="logg" failed; root_dir="logs" worked.'
