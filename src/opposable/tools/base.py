"""What a tool is to the rest: a definition, and a way to run it on checked arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.domain.language import Language
from opposable.domain.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool may know of the call it serves: ids for records, and the language of the run.

    `report` takes pieces of text to be told while the tool runs (None: nobody listens). `idempotency_key` is the same
    for every try of one call.
    """

    run_id: str = ""
    call_id: str = ""
    language: Language = "en"
    trace_id: str = ""
    agent_id: str = ""
    conversation_id: str = ""
    idempotency_key: str = ""
    report: Callable[[str], None] | None = None


NO_CONTEXT = CallContext()


class Tool(Protocol):
    """One thing a model can call.

    `tool_id` is the owner's name for it (`calculator`, `schema.list_tables`); `definition` is what a model is told.
    `timeout` is in seconds, None for the library's default.
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

        Raises: `InvalidArguments` when the arguments do not fit, told by field; other `ToolError` kinds when the tool
        says how it failed; whatever else goes wrong inside.
        """
        ...
