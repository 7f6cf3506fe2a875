"""The usual `mcpServers` JSON, read into specs."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.specs import McpServerSpec

_SPEC_FIELDS = ("command", "args", "env", "cwd", "url", "headers")
_HTTP_TRANSPORTS = ("http", "streamable-http", "streamable_http", "streamableHttp")
_VARIABLE_PATTERN = re.compile(r"\$\{(?:env:)?([^}]*)\}")


def read_servers(config: str | bytes | Mapping[str, Any]) -> list[McpServerSpec]:
    """The servers of a configuration: `{"mcpServers": {NAME: {"command", "args", "env"} or {"url", "headers"}}}`.

    `servers` is read like `mcpServers`; `disabled` is kept; `${NAME}` at the end of a value becomes the reference
    `env:NAME`; fields only other programs use are left out. Raises: `BadInput` naming the server and what is wrong.
    """
    servers = _get_servers(config)
    specs = [_create_spec(name, entry) for name, entry in servers.items()]
    ids = [spec.tool_id for spec in specs]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise BadInput(f"Two servers would be called {twice!r}; rename one of them.")
    return specs


def _get_servers(config: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        whole = orjson.loads(config) if isinstance(config, str | bytes) else config
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The configuration is no JSON: {error}.") from error
    servers = whole.get("mcpServers", whole.get("servers")) if isinstance(whole, Mapping) else None
    if not isinstance(servers, Mapping):
        raise BadInput('The configuration has no "mcpServers": give {"mcpServers": {"NAME": {"command": "…"}}}.')
    return servers


def _create_spec(name: str, entry: Any) -> McpServerSpec:
    if not isinstance(entry, Mapping):
        raise BadInput(f"{name}: a server is an object with a `command` or a `url`, not {type(entry).__name__}.")
    kind = entry.get("type", entry.get("transport"))
    if kind == "sse":
        raise BadInput(f"{name}: the transport sse is gone from MCP; give the server's streamable HTTP address.")
    if kind is not None and kind not in (*_HTTP_TRANSPORTS, "stdio", "ws", "websocket"):
        raise BadInput(f"{name}: there is no transport {kind!r}; there are stdio and streamable-http.")
    fields = {key: entry[key] for key in _SPEC_FIELDS if entry.get(key) is not None}
    for key in ("env", "headers"):
        if isinstance(fields.get(key), Mapping):
            fields[key] = {inner: _to_reference(f"{name}: {inner}", value) for inner, value in fields[key].items()}
    tool_id = re.sub(r"[^\w.\-]+", "_", name)
    try:
        return McpServerSpec(tool_id=tool_id, display_name=name, enabled=entry.get("disabled") is not True, **fields)
    except ValidationError as error:
        raise BadInput(f"{name}: {_describe_error(error)}") from error


def _to_reference(location: str, value: Any) -> Any:
    if not isinstance(value, str) or "${" not in value:
        return value
    found = _VARIABLE_PATTERN.search(value)
    if found is None or found.end() != len(value) or not re.fullmatch(r"[A-Za-z_]\w*", found[1]):
        raise BadInput(f"{location}: of ${{…}}, one variable's name at the end of the value is understood: ${{NAME}}.")
    if found.start() and not value[: found.start()].endswith(" "):
        raise BadInput(f"{location}: put a blank before ${{{found[1]}}}, or give the variable alone.")
    return f"{value[: found.start()]}env:{found[1]}"


def _describe_error(error: ValidationError) -> str:
    """What pydantic found, without what was given: it may be secret."""
    parts = []
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(step) for step in one["loc"])
        parts.append(f"{place}: {one['msg']}" if place else one["msg"])
    return "; ".join(part.replace("Value error, ", "") for part in parts)
