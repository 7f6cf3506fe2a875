"""Records of tool calls made without the service, in the store if one exists."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from opposable.domain.records import execution_from_result
from opposable.domain.tools import ToolResult
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:
    from opposable.store.store import Store

RecordCall = Callable[[str, Mapping[str, Any], ToolResult], None]
"""Records a finished call: the name of the tool, the arguments and the result. Never waits, never raises."""


@asynccontextmanager
async def open_execution_log(store: "Store | None", library: ToolLibrary) -> AsyncIterator[RecordCall]:
    """Record calls in the store, without their secrets; all are written at the end. Without a store, record nothing."""
    if store is None:
        yield lambda name, arguments, result: None
        return
    from opposable.store.recorder import Recorder  # lazy: only where a store exists

    async with Recorder(store.executions, store.runs) as recorder:

        def record(name: str, arguments: Mapping[str, Any], result: ToolResult) -> None:
            recorder.record(execution_from_result(result, library.get_tool_id(name), dict(arguments)))

        yield record
