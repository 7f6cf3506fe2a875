"""Tools as their owners describe them: data that can be stored, sent and turned into tools."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

ToolType = Literal["function", "http", "mcp_server", "skill"]
"""What a tool is made from."""

ID = r"^[\w.\-]{1,100}$"
"""An owner's name of a tool: letters of any script, digits, dots, dashes, underscores."""

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


class Frozen(BaseModel):
    """Data that is checked once and does not change; a field it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(Frozen):
    """A call that works, and what it brings."""

    arguments: dict[str, Any] = {}
    result: Any = None
    description: str = ""


class Capability(Frozen):
    """One action of a tool. `parameters` is a JSON Schema of type object."""

    name: str = Field(min_length=1, max_length=100)
    description: str = ""
    parameters: dict[str, Any] = NO_PARAMETERS
    examples: tuple[Example, ...] = ()
    category: str = "general"


class RateLimit(Frozen):
    """At most `calls` in any `seconds`."""

    calls: int = Field(gt=0)
    seconds: float = Field(default=60.0, gt=0)


class ToolSpec(Frozen):
    """What every kind of tool has.

    `tool_id` is the owner's name and the key. `mode` says whether increments are told as they come. `idempotent` tools
    may be retried and, for `cache_seconds`, answered from a cache. `dependencies` are ids of tools that must be there.
    `timeout` is in seconds, None for the library's default. `priority` ranks among equals, highest first.
    """

    tool_id: str = Field(pattern=ID)
    display_name: str = ""
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    tags: tuple[str, ...] = ()
    version: str = "1.0.0"
    enabled: bool = True
    metadata: dict[str, Any] = {}
    category: str = "general"
    subcategory: str = "general"
    priority: int = 1
    dependencies: tuple[str, ...] = ()
    mode: Literal["invokable", "streamable"] = "invokable"
    idempotent: bool = False
    needs_approval: bool = False
    rate_limit: RateLimit | None = None
    timeout: float | None = Field(default=None, gt=0)
    cache_seconds: float = Field(default=0.0, ge=0)


class FunctionToolSpec(ToolSpec):
    """A function, or a class whose public methods are actions, named by module and class.

    With `class_name` empty, `function_name` names a function of the module.
    """

    tool_type: Literal["function"] = "function"
    module_path: str
    class_name: str = ""
    function_name: str = ""
    init_params: dict[str, Any] = {}


class AuthConfig(Frozen):
    """How a request proves who sends it. Secrets are references (`env:NAME`), never values.

    bearer: `token`; api_key: `token`, in header or query `name`; basic: `username` (a value or a reference) and `password`.
    """

    type: Literal["none", "bearer", "api_key", "basic"] = "none"
    token: str = ""
    name: str = "X-API-Key"
    place: Literal["header", "query"] = "header"
    username: str = ""
    password: str = ""


class EndpointConfig(Frozen):
    """Where and how an HTTP tool is called.

    `url_template` may hold `{param}`; parameters it does not hold go where `query`, `header_params` or `body` say
    (lists of names), and by default into the query of a GET or DELETE and the body of the rest. `timeout` is in seconds.
    `internal://NAME` in place of a URL is a built-in tool.
    """

    url_template: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "GET"
    headers: dict[str, str] = {}
    auth: AuthConfig = AuthConfig()
    timeout: float = Field(default=30.0, gt=0)
    query: tuple[str, ...] | None = None
    header_params: dict[str, str] = {}
    body: tuple[str, ...] | None = None
    body_type: Literal["json", "form", "multipart"] = "json"


class ResponseTransform(Frozen):
    """What of a response is handed on: a JMESPath `extract`, and at most `max_characters` of it."""

    extract: str = ""
    max_characters: int = Field(default=20_000, gt=0)


class HttpToolSpec(ToolSpec):
    """An HTTP endpoint as a tool: data, so it can be a row of a table. `parameters` is a JSON Schema of type object."""

    tool_type: Literal["http"] = "http"
    endpoint: EndpointConfig
    parameters: dict[str, Any] = NO_PARAMETERS
    response_transform: ResponseTransform = ResponseTransform()


class McpServerSpec(ToolSpec):
    """An MCP server whose tools are offered as `tool_id.tool`: a program (`command`, stdio) or a URL (streamable HTTP).

    `env` and `headers` may hold references: `env:NAME`, alone or as the last word (`Bearer env:NAME`). A program gets
    `env` and the few variables every program needs, nothing else of ours. `connect_timeout` is in seconds and covers
    the start of the program. `pin` says what becomes of a tool seen for the first time: "accept" it, or set it aside
    until the owner is asked ("ask"); a tool that changed is set aside either way.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    tool_type: Literal["mcp_server"] = "mcp_server"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: Path | None = None
    url: str = ""
    headers: dict[str, str] = {}
    connect_timeout: float = Field(default=30.0, gt=0)
    pin: Literal["accept", "ask"] = "accept"

    @field_validator("url")
    @classmethod
    def _spoken(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme in ("ws", "wss"):
            raise ValueError(
                f"{parts.scheme}:// cannot be used: today's MCP has no WebSocket transport. Give the server's "
                "streamable HTTP address (http://HOST:PORT/mcp), or the `command` that starts it (stdio)."
            )
        if url and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError(f"{url!r} is no http:// or https:// address of a server.")
        if parts.username is not None or parts.password is not None:
            raise ValueError("A URL holds no user or password here; put them into `headers`, as env:NAME references.")
        return url

    @model_validator(mode="after")
    def _one_way_there(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("An MCP server has either a `command` (stdio) or a `url` (streamable HTTP).")
        return self


class SkillSpec(ToolSpec):
    """A folder with a `SKILL.md`."""

    tool_type: Literal["skill"] = "skill"
    path: Path


AnyToolSpec = Annotated[FunctionToolSpec | HttpToolSpec | McpServerSpec | SkillSpec, Field(discriminator="tool_type")]
"""A spec of any kind, told apart by `tool_type`."""


class AgentToolBinding(Frozen):
    """A tool as one agent has it: on or off, and with parts of its spec replaced by `config`."""

    tool_id: str
    enabled: bool = True
    config: dict[str, Any] = {}


class Registration(Frozen):
    """What came of registering: the model-facing names accepted, and what was set aside with the reason."""

    tool_id: str
    accepted: tuple[str, ...] = ()
    set_aside: dict[str, str] = {}

    @property
    def ok(self) -> bool:
        """Whether at least one tool can be called."""
        return bool(self.accepted)
