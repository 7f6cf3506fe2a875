"""A server's tools as tools of ours."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, ToolFailed
from opposable.domain.specs import McpServerSpec
from opposable.domain.tools import ToolDefinition
from opposable.tools.argument_validation import ValidateArguments, compile_validator
from opposable.tools.mcp.connection import McpConnection, OnProgress
from opposable.tools.mcp.result_content import blocks_to_text, result_to_value
from opposable.tools.mcp.text_sanitizer import sanitize_schema, sanitize_text
from opposable.tools.tool_names import to_safe_name

if TYPE_CHECKING:
    from mcp.types import Tool as ServerTool

MAX_NAME_CHARACTERS = 128
MAX_ID_CHARACTERS = 100
MAX_SCHEMA_BYTES = 100_000
"""Bytes of JSON of one tool's schema; a larger one is no description but a load."""
IDEMPOTENCY_META_KEY = "opposable/idempotency-key"
"""Where in a call's `_meta` the key stands that is the same for every try of one call."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of an MCP server.

    `name` is what the server calls it and `tool_id` is `server.name`. `hints` are the server's own words on what the
    tool does (`read_only_hint`, `destructive_hint` …): nothing is decided by them. `check` raises `InvalidArguments`;
    `refuse` raises for a tool that must not be called now.
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

    @property
    def streams(self) -> bool:
        """True: a server may tell how far a call has come."""
        return True

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Check the arguments, call the server, and give back its value (see `content.value_of`).

        Progress goes to `context.report`, in order. Raises: `InvalidArguments`, `ToolRefused` for a tool set aside
        since, `ToolUnavailable`, `ToolFailed` with the server's own words.
        """
        self.raise_if_unavailable(self.name)
        self.check(arguments)
        meta = {IDEMPOTENCY_META_KEY: context.idempotency_key} if context.idempotency_key else {}
        progress = _create_progress_reporter(context.report) if context.report is not None else None
        result = await self.connection.call(self.name, arguments, progress, meta)
        value = result_to_value(result, self.connection.secrets)
        if result.is_error:
            said = value if isinstance(value, str) else blocks_to_text(result.content)
            raise ToolFailed(said or f"{self.tool_id} failed and did not say why.")
        return value


def _create_progress_reporter(report: Callable[[str], None]) -> OnProgress:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        far = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        report(f"{sanitize_text(message, 1_000)} ({far})\n" if message else f"{far}\n")

    return told


def validate_server_tool(server_tool: "ServerTool") -> tuple[dict[str, Any], ValidateArguments]:
    """The schema a model is told of a server's tool, and the check of arguments.

    Raises: `ValueError` with the reason why the tool cannot be used.
    """
    if not server_tool.name or len(server_tool.name) > MAX_NAME_CHARACTERS or not server_tool.name.isprintable():
        raise ValueError(f"its name is empty, longer than {MAX_NAME_CHARACTERS} characters or not printable")
    schema = server_tool.input_schema
    if schema.get("type") != "object":
        raise ValueError(f"its input schema is of type {schema.get('type')!r}; it must be an object")
    size = len(orjson.dumps(schema))
    if size > MAX_SCHEMA_BYTES:
        raise ValueError(f"its input schema has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are taken")
    try:
        check = compile_validator(schema)
    except BadInput as error:
        raise ValueError(str(error).rstrip(".")) from error
    told: dict[str, Any] = {"properties": {}, **sanitize_schema(schema)}
    return told, check


def create_tool(
    server_tool: "ServerTool",
    spec: McpServerSpec,
    name: str,
    schema_and_validator: tuple[dict[str, Any], ValidateArguments],
    connection: McpConnection,
    raise_if_unavailable: Callable[[str], None],
) -> McpTool:
    """A tool of ours from a server's, under the model-facing `name`."""
    parameters, check = schema_and_validator
    hints = server_tool.annotations.model_dump(exclude_none=True) if server_tool.annotations else {}
    title = sanitize_text(server_tool.title or hints.pop("title", ""), 200)
    description = sanitize_text(server_tool.description or "") or title or server_tool.name.replace("_", " ")
    definition = ToolDefinition(name, description, parameters)
    tool_id = to_tool_id(spec.tool_id, server_tool.name)
    return McpTool(
        server_tool.name, tool_id, definition, spec.timeout, title, hints, check, connection, raise_if_unavailable
    )


def to_tool_id(server_id: str, tool: str) -> str:
    """`server.tool` as an id; where the server's name does not fit into one, part of its hash makes up for it."""
    fitting = re.sub(r"[^\w.-]+", "_", tool)
    plain = f"{server_id}.{fitting}"
    if fitting == tool and len(plain) <= MAX_ID_CHARACTERS:
        return plain
    return f"{plain[: MAX_ID_CHARACTERS - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def to_tool_names(server_id: str, tools: Iterable[str]) -> dict[str, str]:
    """The model-facing name of each of a server's tools; where two would be the same, both get part of their hash."""
    plain = {tool: to_safe_name(to_tool_id(server_id, tool)) for tool in tools}
    taken = Counter(plain.values())
    return {tool: name if taken[name] == 1 else _to_hashed_name(name, tool) for tool, name in plain.items()}


def _to_hashed_name(name: str, tool: str) -> str:
    return f"{name[:55]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"
