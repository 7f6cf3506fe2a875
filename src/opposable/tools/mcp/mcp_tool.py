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
from opposable.tools.argument_validation import Check, checker
from opposable.tools.mcp.connection import Connection, OnProgress
from opposable.tools.mcp.result_content import text_of, value_of
from opposable.tools.mcp.text_sanitizer import harmless, harmless_schema
from opposable.tools.tool_names import safe_name

if TYPE_CHECKING:
    from mcp.types import Tool as ServerTool

LONGEST_NAME = 128
LONGEST_ID = 100
LARGEST_SCHEMA = 100_000
"""Bytes of JSON of one tool's schema; a larger one is no description but a load."""
KEY_META = "opposable/idempotency-key"
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
    check: Check
    connection: Connection
    refuse: Callable[[str], None]

    @property
    def streams(self) -> bool:
        """True: a server may tell how far a call has come."""
        return True

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Check the arguments, call the server, and give back its value (see `content.value_of`).

        Progress goes to `context.report`, in order. Raises: `InvalidArguments`, `ToolRefused` for a tool set aside
        since, `ToolUnavailable`, `ToolFailed` with the server's own words.
        """
        self.refuse(self.name)
        self.check(arguments)
        meta = {KEY_META: context.idempotency_key} if context.idempotency_key else {}
        progress = _reporter(context.report) if context.report is not None else None
        result = await self.connection.call(self.name, arguments, progress, meta)
        value = value_of(result, self.connection.secrets)
        if result.is_error:
            said = value if isinstance(value, str) else text_of(result.content)
            raise ToolFailed(said or f"{self.tool_id} failed and did not say why.")
        return value


def _reporter(report: Callable[[str], None]) -> OnProgress:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        far = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        report(f"{harmless(message, 1_000)} ({far})\n" if message else f"{far}\n")

    return told


def usable(given: "ServerTool") -> tuple[dict[str, Any], Check]:
    """The schema a model is told of a server's tool, and the check of arguments.

    Raises: `ValueError` with the reason why the tool cannot be used.
    """
    if not given.name or len(given.name) > LONGEST_NAME or not given.name.isprintable():
        raise ValueError(f"its name is empty, longer than {LONGEST_NAME} characters or not printable")
    schema = given.input_schema
    if schema.get("type") != "object":
        raise ValueError(f"its input schema is of type {schema.get('type')!r}; it must be an object")
    size = len(orjson.dumps(schema))
    if size > LARGEST_SCHEMA:
        raise ValueError(f"its input schema has {size:,} bytes; at most {LARGEST_SCHEMA:,} are taken")
    try:
        check = checker(schema)
    except BadInput as error:
        raise ValueError(str(error).rstrip(".")) from error
    told: dict[str, Any] = {"properties": {}, **harmless_schema(schema)}
    return told, check


def made(
    given: "ServerTool",
    spec: McpServerSpec,
    name: str,
    usable: tuple[dict[str, Any], Check],
    connection: Connection,
    refuse: Callable[[str], None],
) -> McpTool:
    """A tool of ours from a server's, under the model-facing `name`."""
    parameters, check = usable
    hints = given.annotations.model_dump(exclude_none=True) if given.annotations else {}
    title = harmless(given.title or hints.pop("title", ""), 200)
    description = harmless(given.description or "") or title or given.name.replace("_", " ")
    definition = ToolDefinition(name, description, parameters)
    tool_id = id_of(spec.tool_id, given.name)
    return McpTool(given.name, tool_id, definition, spec.timeout, title, hints, check, connection, refuse)


def id_of(server_id: str, tool: str) -> str:
    """`server.tool` as an id; where the server's name does not fit into one, part of its hash makes up for it."""
    fitting = re.sub(r"[^\w.-]+", "_", tool)
    plain = f"{server_id}.{fitting}"
    if fitting == tool and len(plain) <= LONGEST_ID:
        return plain
    return f"{plain[: LONGEST_ID - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def names_of(server_id: str, tools: Iterable[str]) -> dict[str, str]:
    """The model-facing name of each of a server's tools; where two would be the same, both get part of their hash."""
    plain = {tool: safe_name(id_of(server_id, tool)) for tool in tools}
    taken = Counter(plain.values())
    return {tool: name if taken[name] == 1 else _hashed(name, tool) for tool, name in plain.items()}


def _hashed(name: str, tool: str) -> str:
    return f"{name[:55]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"
