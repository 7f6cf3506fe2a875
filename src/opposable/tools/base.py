"""What a tool is to the rest: a definition, and a way to run it on checked arguments."""

from typing import Any, Protocol

from opposable.domain.call_context import CallContext
from opposable.domain.tools import ToolDefinition


class Tool(Protocol):
    """One thing a model can call.

    `tool_id` is the owner's name for it (`calculator`, `schema.list_tables`); `definition` is what a model is told.
    `timeout` is in seconds, None for the library's default.

    A tool may have three things more, which the library looks for: `streams`, true where `run` reports pieces as they
    come; `check(arguments)`, which raises `InvalidArguments` and does nothing else, so that nobody is asked about, and
    nothing counted for, a call that does not fit; `spec`, where it is registered without one.
    """

    @property
    def tool_id(self) -> str:
        """The owner's name of the tool, with a dot before the action where there are several."""
        ...

    @property
    def definition(self) -> ToolDefinition:
        """What a model is told: a provider-safe name, a description, a JSON Schema."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds a call may take."""
        ...

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """The value the call brings: text, or anything JSON can hold.

        A tool whose result comes in pieces hands each to `context.report`, where there is one, and returns the whole.

        Raises: `InvalidArguments` when the arguments do not fit, told by field; other `ToolError` kinds when the tool
        says how it failed (one that is a `TimeoutError` too is told as a time-out); whatever else goes wrong inside.
        """
        ...
