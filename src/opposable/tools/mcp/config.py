"""Reads the common `mcpServers` JSON into specs."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.specs import McpServerSpec
from opposable.domain.validation_problems import describe_problems

_SPEC_FIELDS = ("command", "args", "env", "cwd", "url", "headers")
_HTTP_TRANSPORTS = ("http", "streamable-http", "streamable_http", "streamableHttp")
_SHELLS = ("sh", "bash", "dash", "zsh")
_VARIABLE_PATTERN = re.compile(r"\$\{(?:env:)?([^}]*)\}")


def read_servers(
    config: str | bytes | Mapping[str, Any], *, skipped: dict[str, str] | None = None
) -> list[McpServerSpec]:
    """Read the servers of a configuration.

    `{"mcpServers": {NAME: {"command", "args", "env"} or {"url", "headers"}}}` is accepted, and `servers` in place of
    `mcpServers`. `disabled` disables a server. `${NAME}` at the end of a value of `env` or `headers` becomes the
    reference `env:NAME`, and is refused elsewhere but in the script of a shell. Fields that only other programs use
    are ignored. If `skipped` is given, invalid servers are left out, and the reason of each is added to it by its name.

    Raises:
        BadInput: The configuration is not valid, or a server is not and `skipped` is None; the message names it.
    """
    specs = []
    for name, entry in _get_servers(config).items():
        try:
            specs.append(_create_spec(name, entry))
        except BadInput as error:
            if skipped is None:
                raise
            skipped[name] = str(error).removeprefix(f"{name}: ")
    ids = [spec.tool_id for spec in specs]
    duplicate = next((tool_id for tool_id in ids if ids.count(tool_id) > 1), None)
    if duplicate is not None:
        raise BadInput(f"Two servers have the id {duplicate!r}. Rename one of them.")
    return specs


def _get_servers(config: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        document = orjson.loads(config) if isinstance(config, str | bytes) else config
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The configuration is not valid JSON: {error}.") from error
    servers = document.get("mcpServers", document.get("servers")) if isinstance(document, Mapping) else None
    if not isinstance(servers, Mapping):
        raise BadInput('The configuration has no "mcpServers". Give {"mcpServers": {"NAME": {"command": "…"}}}.')
    return servers


def _create_spec(name: str, entry: Any) -> McpServerSpec:
    if not isinstance(entry, Mapping):
        raise BadInput(f"{name}: a server must be an object with a `command` or a `url`, not {type(entry).__name__}.")
    transport = entry.get("type", entry.get("transport"))
    if transport == "sse":
        raise BadInput(f"{name}: MCP no longer has the transport sse. Give the server's streamable HTTP address.")
    if transport is not None and transport not in (*_HTTP_TRANSPORTS, "stdio", "ws", "websocket"):
        raise BadInput(f"{name}: unknown transport {transport!r}. Use stdio or streamable-http.")
    fields = {key: entry[key] for key in _SPEC_FIELDS if entry.get(key) is not None}
    for key in ("env", "headers"):
        if isinstance(fields.get(key), Mapping):
            fields[key] = {inner: _to_reference(f"{name}: {inner}", value) for inner, value in fields[key].items()}
    for key in ("command", "args", "cwd", "url"):
        values = _get_arguments(fields) if key == "args" else [fields.get(key)]
        if any("${" in str(value) for value in values):
            raise BadInput(
                f"{name}: {key}: variables such as ${{NAME}} are replaced in env and headers only. "
                f"Give the value itself, or pass it in {'headers' if key == 'url' else 'env'}."
            )
    tool_id = re.sub(r"[^\w.\-]+", "_", name)
    try:
        return McpServerSpec(tool_id=tool_id, display_name=name, enabled=entry.get("disabled") is not True, **fields)
    except ValidationError as error:
        raise BadInput(f"{name}: {describe_problems(error, McpServerSpec)}") from error


def _get_arguments(fields: Mapping[str, Any]) -> list[Any]:
    """Return the arguments of a command without the script of a shell (`bash -lc SCRIPT`), which expands `${NAME}`."""
    given = fields.get("args")
    arguments = [*given] if isinstance(given, list | tuple) else [given]
    if str(fields.get("command")).rpartition("/")[2] not in _SHELLS:
        return arguments
    flag = next(
        (index for index, value in enumerate(arguments) if re.fullmatch("-[a-z]*c", str(value))), len(arguments)
    )
    return arguments[: flag + 1] + arguments[flag + 2 :]


def _to_reference(location: str, value: Any) -> Any:
    """Convert `${NAME}` at the end of a value to `env:NAME`. Raises: `BadInput` for any other use of `${`."""
    if not isinstance(value, str) or "${" not in value:
        return value
    variable = _VARIABLE_PATTERN.search(value)
    if variable is None or variable.end() != len(value) or not re.fullmatch(r"[A-Za-z_]\w*", variable[1]):
        raise BadInput(f"{location}: use one variable, at the end of the value: ${{NAME}}.")
    prefix = value[: variable.start()]
    if prefix and not prefix.endswith(" "):
        raise BadInput(f"{location}: put a space before ${{{variable[1]}}}, or give the variable alone.")
    return f"{prefix}env:{variable[1]}"
