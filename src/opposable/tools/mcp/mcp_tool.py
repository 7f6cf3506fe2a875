"""The tools of an MCP server as tools of a library."""

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, ToolFailed
from opposable.domain.json_text import dump_json
from opposable.domain.specs import MAX_ID_CHARACTERS, McpServerSpec
from opposable.domain.tools import ToolDefinition
from opposable.tools.json_schema_validation import ValidateArguments, compile_repaired
from opposable.tools.mcp.connection import McpConnection
from opposable.tools.mcp.parameter_names import rename_parameters
from opposable.tools.mcp.result_content import error_to_text, result_to_value
from opposable.tools.mcp.text_sanitizer import sanitize_schema, sanitize_text
from opposable.tools.tool_names import hash_name, to_safe_name

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.types import Tool as ServerTool

MAX_NAME_CHARACTERS = 128
MAX_SCHEMA_BYTES = 100_000
"""The largest accepted schema of one tool, as JSON."""
MAX_TITLE_CHARACTERS = 200
MAX_PROGRESS_CHARACTERS = 1_000
IDEMPOTENCY_META_KEY = "opposable/idempotency-key"
"""The key of a call's `_meta` that holds its idempotency key, the same for all attempts of one call."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of an MCP server.

    Attributes:
        name: The server's name of the tool.
        tool_id: `server.name`.
        title: The server's title of the tool.
        hints: The server's annotations (`read_only_hint`, `idempotent_hint` …). The spec can override them.
        raise_if_unavailable: Raises for a tool that must not be called now.
        output_schema: The server's JSON Schema of the results, if it has one.
    """

    name: str
    tool_id: str
    definition: ToolDefinition
    timeout: float | None
    title: str
    hints: dict[str, Any]
    check: ValidateArguments
    connection: McpConnection
    raise_if_unavailable: Callable[[str], None]
    output_schema: dict[str, Any] | None = None

    takes_context = False
    """A server does not get the context of a call."""
    streams = True
    """A server may report the progress of a call."""

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the server and return its value (see `result_to_value`). Progress goes to `context.report`, in order.

        Raises:
            ToolRefused: The tool was rejected after it was sent to the model.
            ToolUnavailable: The server cannot be reached.
            ToolFailed: The server reports a failure; the message is its own.
        """
        self.raise_if_unavailable(self.name)
        meta = {IDEMPOTENCY_META_KEY: context.idempotency_key} if context.idempotency_key else {}
        on_progress = _create_progress_reporter(context.report) if context.report is not None else None
        result = await self.connection.call(self.name, arguments, on_progress, meta)
        if result.is_error:
            message = error_to_text(result, self.connection.secrets)
            raise ToolFailed(message or f"{self.tool_id} failed and did not say why.")
        return result_to_value(result, self.connection.secrets)


def _create_progress_reporter(report: Callable[[str], None]) -> "ProgressFnT":
    async def report_progress(progress: float, total: float | None, message: str | None) -> None:
        position = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        report(f"{sanitize_text(message, MAX_PROGRESS_CHARACTERS)} ({position})\n" if message else f"{position}\n")

    return report_progress


def validate_server_tool(server_tool: "ServerTool") -> tuple[dict[str, Any], ValidateArguments]:
    """Return the schema for the model, without malformed keywords, and the validator of a server's tool.

    Models see other names of parameters whose names providers refuse; the validator returns the server's.

    Raises:
        ValueError: The tool cannot be used; the message is the reason.
    """
    name, schema = server_tool.name, server_tool.input_schema
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise ValueError(f"its name is empty, longer than {MAX_NAME_CHARACTERS} characters or not printable")
    if schema.get("type") != "object":
        raise ValueError(f"its input schema is of type {schema.get('type')!r}; it must be an object")
    size = len(dump_json(schema))
    if size > MAX_SCHEMA_BYTES:
        raise ValueError(f"its input schema has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are allowed")
    parameters = copy.deepcopy(sanitize_schema(schema))
    try:
        validate = compile_repaired(parameters)
    except BadInput as error:
        raise ValueError(str(error).rstrip(".")) from error
    return rename_parameters({"properties": {}, **parameters}, validate)


def create_tool(
    server_tool: "ServerTool",
    spec: McpServerSpec,
    name: str,
    schema_and_validator: tuple[dict[str, Any], ValidateArguments],
    connection: McpConnection,
    raise_if_unavailable: Callable[[str], None],
) -> McpTool:
    """Create the tool of a library from a server's tool. `name` is the name for the model."""
    parameters, validate = schema_and_validator
    hints = server_tool.annotations.model_dump(exclude_none=True) if server_tool.annotations else {}
    title = sanitize_text(server_tool.title or hints.pop("title", ""), MAX_TITLE_CHARACTERS)
    description = sanitize_text(server_tool.description or "") or title or server_tool.name.replace("_", " ")
    return McpTool(
        server_tool.name,
        to_tool_id(spec.tool_id, server_tool.name),
        ToolDefinition(name, description, parameters),
        spec.timeout,
        title,
        hints,
        validate,
        connection,
        raise_if_unavailable,
        sanitize_schema(server_tool.output_schema),
    )


def to_tool_id(server_id: str, tool: str) -> str:
    """Return `server.tool`; a name that is not valid in an id is shortened and gets part of its hash."""
    valid_name = re.sub(r"[^\w.-]+", "_", tool)
    tool_id = f"{server_id}.{valid_name}"
    if valid_name == tool and len(tool_id) <= MAX_ID_CHARACTERS:
        return tool_id
    return f"{tool_id[: MAX_ID_CHARACTERS - 9]}_{hash_name(tool)}"


def to_tool_names(server_id: str, tools: Iterable[str]) -> dict[str, str]:
    """Return the name for the model of each of a server's tools. Names that would be equal get part of a hash."""
    names = {tool: to_safe_name(to_tool_id(server_id, tool)) for tool in tools}
    counts = Counter(names.values())
    return {tool: name if counts[name] == 1 else f"{name[:55]}_{hash_name(tool)}" for tool, name in names.items()}
