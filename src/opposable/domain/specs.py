"""Tools as their owners describe them: data that can be stored, sent and turned into tools."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, field_validator, model_validator

from opposable.domain.spec_normalization import (
    drop_nulls,
    get_schema_properties,
    normalize_example,
    normalize_field_names,
    normalize_parameters,
    normalize_spec,
)

ToolType = Literal["function", "http", "mcp_server", "skill"]
"""What a tool is made from."""

ID_PATTERN = r"^[\w.\-]{1,100}$"
"""An owner's name of a tool: letters of any script, digits, dots, dashes, underscores."""

SECRET_REFERENCE_PATTERN = r"^(env:[A-Za-z_][A-Za-z0-9_]*)?$"
"""A reference to a secret: the environment variable that holds it."""

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}

Parameters = Annotated[dict[str, Any], BeforeValidator(normalize_parameters)]
"""A JSON Schema of type object; parameters told one by one, each with its `required`, are read into one."""


class FrozenModel(BaseModel):
    """Data that is checked once and does not change; a field it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(FrozenModel):
    """A call that works, and what it brings."""

    arguments: dict[str, Any] = {}
    result: Any = None
    description: str = ""


class Capability(FrozenModel):
    """One action of a tool. `parameters` is a JSON Schema of type object. An example may be its arguments alone."""

    name: str = Field(min_length=1, max_length=100)
    description: str = ""
    parameters: Parameters = NO_PARAMETERS
    examples: tuple[Example, ...] = ()
    category: str = "general"

    @model_validator(mode="before")
    @classmethod
    def _normalize_examples(cls, data: Any) -> Any:
        data = drop_nulls(data, cls.model_fields)
        if not isinstance(data, dict) or not isinstance(data.get("examples"), list | tuple):
            return data
        names = get_schema_properties(normalize_parameters(data.get("parameters")))
        return {**data, "examples": [normalize_example(one, Example.model_fields, names) for one in data["examples"]]}


class RateLimit(FrozenModel):
    """At most `calls` in any `seconds`."""

    calls: int = Field(gt=0)
    seconds: float = Field(default=60.0, gt=0)


class ToolSpec(FrozenModel):
    """What every kind of tool has.

    `tool_id` is the owner's name and the key. `name` is what models call a tool of one action, where every provider
    takes it (letters, digits, _ and -, at most 64), and else what people call it; "" is the id. `mode` says whether increments are told as they come. `idempotent` tools
    may be retried and, for `cache_seconds`, answered from a cache. `dependencies` are ids of tools that must be there.
    `timeout` is in seconds, None for the library's default. `priority` ranks among equals, highest first.

    `id` is read as `tool_id`, and `type` as `mode` or `tool_type`; a field that is null has its default.
    """

    tool_id: str = Field(pattern=ID_PATTERN)
    name: str = Field(default="", max_length=100)
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

    @model_validator(mode="before")
    @classmethod
    def _normalize_fields(cls, data: Any) -> Any:
        return drop_nulls(normalize_field_names(data), cls.model_fields)


class FunctionToolSpec(ToolSpec):
    """A function, or a class whose public methods are actions, named by module and class.

    With `class_name` empty, `function_name` names a function of the module.
    """

    tool_type: Literal["function"] = "function"
    module_path: str
    class_name: str = ""
    function_name: str = ""
    init_params: dict[str, Any] = {}


class AuthConfig(FrozenModel):
    """How a request proves who sends it. Secrets are references (`env:NAME`), never values.

    bearer: `token`; api_key: `token`, in the header, query parameter or cookie `name`; basic: `username` (a value or a
    reference) and `password`. `token_env: "X"` is read as `token: "env:X_TOKEN"` (bearer) or `"env:X_API_KEY"` (api_key).
    """

    type: Literal["none", "bearer", "api_key", "basic"] = "none"
    token: str = Field(default="", pattern=SECRET_REFERENCE_PATTERN)
    name: str = "X-API-Key"
    place: Literal["header", "query", "cookie"] = "header"
    username: str = ""
    password: str = Field(default="", pattern=SECRET_REFERENCE_PATTERN)

    @model_validator(mode="before")
    @classmethod
    def _normalize_secrets(cls, data: Any) -> Any:
        """`token_env` told as a reference; a plain secret made unreadable, so that no error repeats it."""
        if not isinstance(data, dict):
            return data
        data = drop_nulls(data, ("token_env", *cls.model_fields))
        told = {key: value for key, value in data.items() if key != "token_env"}
        if data.get("token_env"):
            ending = "API_KEY" if told.get("type") == "api_key" else "TOKEN"
            told.setdefault("token", f"env:{data['token_env']}_{ending}")
        plain = [
            name
            for name in ("token", "password")
            if name in told and not re.match(SECRET_REFERENCE_PATTERN, str(told[name]))
        ]
        return told | dict.fromkeys(plain, "a plain value, not shown")

    @model_validator(mode="after")
    def _check_required_secrets(self) -> "AuthConfig":
        needed = {"bearer": ("token",), "api_key": ("token",), "basic": ("username", "password")}.get(self.type, ())
        missing = [name for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(f"auth of type {self.type} needs {' and '.join(missing)}; a secret is given as env:NAME")
        return self


ParameterLocation = Literal["path", "query", "header", "cookie", "body"]
"""A part of a request that a parameter can fill."""

ParameterStyle = Literal["", "simple", "form", "spaceDelimited", "pipeDelimited", "deepObject", "json"]
"""How an array or an object is written outside of a body."""


class ParameterPlacement(FrozenModel):
    """Where a parameter goes and how it is written there.

    `name` is its name on the wire (its own by default). `style` and `explode` say how arrays and objects are written, in
    the words of OpenAPI; "" is the place's own way (`form` in a query or cookie, `simple` in a path or header), and
    `json` writes the value as JSON text.
    """

    place: ParameterLocation
    name: str = ""
    style: ParameterStyle = ""
    explode: bool | None = None


class EndpointConfig(FrozenModel):
    """Where and how an HTTP tool is called.

    `url_template` may hold `{param}` in its path and query, each filled with one percent-encoded segment. Parameters it
    does not hold go where `places` says, by default into the query of a GET, HEAD or DELETE and the body of the rest.
    `headers` are sent as they are; a value `env:NAME` is taken from the environment. `timeout` is in seconds.

    Body parameters make one JSON object, form or multipart; `body_param` names the one parameter that is the whole body
    instead (the only way with `text` and `binary`). `files` names the fields (on the wire) that are files. `body_required` sends an
    empty object where no parameter fills the body. `defaults` sends the defaults of the parameters' schemas.
    `redirects` is how many are followed. `internal://NAME` in place of a URL is a built-in tool.
    """

    url_template: str = Field(min_length=1, max_length=8000)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "GET"
    headers: dict[str, str] = {}
    auth: AuthConfig = AuthConfig()
    timeout: float = Field(default=30.0, gt=0)
    connect_timeout: float = Field(default=10.0, gt=0)
    places: dict[str, ParameterLocation | ParameterPlacement] = {}
    body_type: Literal["json", "form", "multipart", "text", "binary"] = "json"
    body_param: str = ""
    body_required: bool = False
    content_type: str = ""
    files: tuple[str, ...] = ()
    defaults: bool = True
    redirects: int = Field(default=0, ge=0, le=5)

    @model_validator(mode="before")
    @classmethod
    def _normalize_fields(cls, data: Any) -> Any:
        """A method in capitals, and defaults where nothing is said: null, and a time-out of 0."""
        told = drop_nulls(data, cls.model_fields)
        if not isinstance(told, dict):
            return told
        told = {key: value for key, value in told.items() if (key, value) != ("timeout", 0)}
        method = told.get("method")
        return {**told, "method": method.upper()} if isinstance(method, str) else told


class ResponseTransform(FrozenModel):
    """What of a response is handed on: a JMESPath `extract`, and at most `max_characters` of it (None: the library's cap).

    At most `max_bytes` of a body are read.
    """

    extract: str = ""
    max_characters: int | None = Field(default=None, gt=0)
    max_bytes: int = Field(default=5_000_000, gt=0)


class HttpToolSpec(ToolSpec):
    """An HTTP endpoint as a tool: data, so it can be a row of a table. `parameters` is a JSON Schema of type object."""

    tool_type: Literal["http"] = "http"
    endpoint: EndpointConfig
    parameters: Parameters = NO_PARAMETERS
    response_transform: ResponseTransform = ResponseTransform()


class McpServerSpec(ToolSpec):
    """An MCP server whose tools are offered as `tool_id.tool`: a program (`command`, stdio) or a URL (streamable HTTP).

    `env` and `headers` may hold references: `env:NAME`, alone or as the last word (`Bearer env:NAME`). A program gets
    `env` and the few variables every program needs, nothing else of ours. `connect_timeout` is in seconds and covers
    the start of the program. `pin` says what becomes of a tool seen for the first time: "accept" it, or set it aside
    until the owner is asked ("ask"); a tool that changed is set aside either way.

    `endpoint` is read as `url`; what `server_config` and `connection_params` hold is read as fields of the spec, a
    `timeout` of the connection as `connect_timeout`.
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
    def _check_url(cls, url: str) -> str:
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
    def _check_one_transport(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("An MCP server has either a `command` (stdio) or a `url` (streamable HTTP).")
        return self


class SkillSpec(ToolSpec):
    """A folder with a `SKILL.md`."""

    tool_type: Literal["skill"] = "skill"
    path: Path


AnyToolSpec = Annotated[
    FunctionToolSpec | HttpToolSpec | McpServerSpec | SkillSpec,
    Discriminator("tool_type"),
    BeforeValidator(normalize_spec),
]
"""A spec of any kind, told apart by `tool_type`, or without one by what it has."""


class AgentToolBinding(FrozenModel):
    """A tool as one agent has it: on or off, and with parts of its spec replaced by `config`."""

    tool_id: str
    enabled: bool = True
    config: dict[str, Any] = {}


class AgentLimits(FrozenModel):
    """How far one run of an agent may go; None is no limit. `seconds` is wall time; `cost` needs the model's price."""

    turns: int | None = Field(default=20, gt=0)
    tool_calls: int | None = Field(default=50, ge=0)
    tokens: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=600.0, gt=0, allow_inf_nan=False)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class AgentSpec(FrozenModel):
    """An agent as data: it can be stored, sent, written as YAML.

    `model` is a model's name, "" for the service's own. `tool_choice` is "auto", "none", "required" or a tool's id.
    `needs_approval` are ids of tools whose calls a person must allow, beside those that ask for it themselves.
    `database` and `semantics` are what questions about data are answered from. `learning` says whether what fails is
    remembered for this agent alone ("own") or for all.
    """

    agent_id: str = Field(pattern=ID_PATTERN)
    name: str = ""
    description: str = ""
    model: str = ""
    instructions: str = ""
    tools: tuple[AgentToolBinding, ...] = ()
    limits: AgentLimits = AgentLimits()
    tool_choice: str = "auto"
    needs_approval: tuple[str, ...] = ()
    database: str = ""
    semantics: str = ""
    learning: Literal["own", "shared"] = "shared"


class Registration(FrozenModel):
    """What came of registering: the model-facing names accepted, and what was set aside with the reason."""

    tool_id: str
    accepted: tuple[str, ...] = ()
    set_aside: dict[str, str] = {}

    @property
    def has_tools(self) -> bool:
        """Whether at least one tool can be called."""
        return bool(self.accepted)
