"""The `Tool` protocol: a definition for the model, and a way to run checked arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.domain.call_context import CallContext
from opposable.domain.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class ToolOutline:
    """What a library needs to know of a tool that is not called: its definition without the JSON Schema.

    `parameters` are the descriptions of the parameters by name, "" if not described.
    """

    name: str
    description: str
    parameters: Mapping[str, str]

    def count_min_bytes(self) -> int:
        """Return a lower bound of the definition's size as JSON."""
        described = sum(len(text) + len('"description":""') for text in self.parameters.values() if text)
        parameters = sum(len(name) + len('"":{},') for name in self.parameters)
        return len(self.name) + len(self.description) + parameters + described


class Tool(Protocol):
    """A tool that a model can call.

    A tool may have five more members, which the library looks up by name:

    - `check(arguments)` validates the model's arguments without side effects. It returns the arguments that `run`
      takes, or raises `InvalidArguments`. The library calls it once per call, before approval and rate limits.
    - `streams` is true if `run` reports deltas of its result to `context.report`.
    - `takes_context` is false if the results of `run` never depend on the owner, conversation or language of a call, so
      that cached results are shared between them.
    - `spec` is the spec of a tool that is registered without one.
    - `outline` is the `ToolOutline` of a tool whose `definition` takes time to make.
    """

    @property
    def tool_id(self) -> str:
        """The id that its owner gave it, such as `calculator` or `schema.list_tables`."""
        ...

    @property
    def definition(self) -> ToolDefinition:
        """The definition sent to the model: a provider-safe name, a description and a JSON Schema."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds a call may take; None for the library's default."""
        ...

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the tool and return its result: text, or any JSON value.

        A tool that streams passes each delta to `context.report`, if it is set, and returns the whole result.

        Args:
            arguments: What `check` returned. A tool without `check` gets the model's arguments as they are.
            context: The ids, the language and the callbacks of the call.

        Raises:
            InvalidArguments: The arguments do not fit, with one problem per field.
            ToolError: The tool failed in a known way. If it is also a `TimeoutError`, the failure is a time-out.
        """
        ...


def get_outline(tool: Tool) -> ToolOutline:
    """Return the outline of a tool: its own, or that of its definition."""
    outline = getattr(tool, "outline", None)
    if isinstance(outline, ToolOutline):
        return outline
    definition = tool.definition
    properties = definition.parameters.get("properties") or {}
    descriptions = {
        name: str(schema.get("description", "")) if isinstance(schema, dict) else ""
        for name, schema in properties.items()
    }
    return ToolOutline(definition.name, definition.description, descriptions)
