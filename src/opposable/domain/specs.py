"""Specs of tools and agents: data that can be stored, sent and turned into tools."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, field_validator, model_validator

from opposable.domain.failure_rules import FailureWhen
from opposable.domain.spec_normalization import (
    drop_nulls,
    get_schema_properties,
    normalize_example,
    normalize_field_names,
    normalize_parameters,
    normalize_spec,
)
from opposable.domain.tools import AfterUntrusted

ToolType = Literal["function", "http", "mcp_server", "skill"]
"""Kind of a tool."""

ID_PATTERN = r"^[\w.\-]+$"
"""Id of a tool or agent: letters of any script, digits, dots, dashes, underscores."""

MAX_ID_CHARACTERS = 100
"""The longest id. It is not a part of the pattern, which would take 10 MB of memory when it is compiled."""

SECRET_REFERENCE_PATTERN = r"^(env:[A-Za-z_][A-Za-z0-9_]*)?$"  # noqa: S105 - a pattern, no secret
"""Reference to a secret: the environment variable that holds it."""

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}

Parameters = Annotated[dict[str, Any], BeforeValidator(normalize_parameters)]
"""A JSON Schema of type object; a map of parameters that each have `required` is converted."""


class FrozenModel(BaseModel):
    """Base of immutable specs that reject unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(FrozenModel):
    """An example call and its result."""

    arguments: dict[str, Any] = {}
    result: Any = None
    description: str = ""


class Capability(FrozenModel):
    """An action of a tool. `parameters` is a JSON Schema of type object.

    An example may be only its arguments.
    """

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
    """At most `calls` calls in any `seconds` seconds."""

    calls: int = Field(gt=0, lt=10**9)
    seconds: float = Field(default=60.0, gt=0, lt=10**7)


class ToolSpec(FrozenModel):
    """The fields that every kind of tool has.

    Attributes:
        tool_id: The key.
        name: The name for models, where the tool has one action and providers accept the name (letters, digits, _
            and -, at most 64 characters); else only a display name. "" is the id.
        dependencies: Ids of tools that must be registered.
        mode: "streamable" tools report output while they run.
        read_only: Whether calls change nothing. None is the tool's own declaration: the `readOnlyHint` of an MCP
            server, the method GET or HEAD, the decorator of a function; else false.
        idempotent: Whether repeating a call has no further effect, so that it may be retried and, for
            `cache_seconds`, answered from a cache. None is the tool's own declaration (`idempotentHint`), or true if
            the tool is read-only.
        untrusted_output: Whether results are texts of other people, such as web pages or mail. None is true for MCP
            servers and for tools that declare it. See `AgentSpec.after_untrusted`.
        failure_when: The results that are failures, by JSON pointer: `{"/ok": false}`,
            `{"/status": ["error", "failed"]}` or `{"/error": {"not": null}}`. By default a result is never one.
        priority: Rank among equally relevant tools, highest first.
        timeout: In seconds, None for the library's default.

    `id` is read as `tool_id`, and `type` as `mode` or `tool_type`. A field that is null has its default.
    """

    tool_id: str = Field(pattern=ID_PATTERN, max_length=MAX_ID_CHARACTERS)
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
    read_only: bool | None = None
    idempotent: bool | None = None
    untrusted_output: bool | None = None
    failure_when: FailureWhen = {}
    needs_approval: bool = False
    rate_limit: RateLimit | None = None
    timeout: float | None = Field(default=None, gt=0)
    cache_seconds: float = Field(default=0.0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _normalize_fields(cls, data: Any) -> Any:
        return drop_nulls(normalize_field_names(data), cls.model_fields)


class FunctionToolSpec(ToolSpec):
    """A function, or a class whose public methods are actions.

    Without `class_name`, `function_name` is a function of the module. `module_path` is the dotted name of a module, or
    the absolute path of a Python file, which runs only if the owner allowed its content on this machine.
    """

    tool_type: Literal["function"] = "function"
    module_path: str
    class_name: str = ""
    function_name: str = ""
    init_params: dict[str, Any] = {}

    @property
    def file(self) -> Path | None:
        """The Python file, None for a module."""
        path = Path(self.module_path)
        return path if path.is_absolute() else None


class AuthConfig(FrozenModel):
    """Authentication of a request. Secrets are references (`env:NAME`), never values.

    "bearer" needs `token`. "api_key" sends `token` in the header, query parameter or cookie `name`. "basic" needs
    `username` (a value or a reference) and `password`. `token_env: "X"` is read as `token: "env:X_TOKEN"`, or as
    `"env:X_API_KEY"` for an API key.

    If it is `optional` and a variable of the request is not set, the request is sent without authentication, and without
    the headers that are references.
    """

    type: Literal["none", "bearer", "api_key", "basic"] = "none"
    token: str = Field(default="", pattern=SECRET_REFERENCE_PATTERN)
    name: str = "X-API-Key"
    place: Literal["header", "query", "cookie"] = "header"
    username: str = ""
    password: str = Field(default="", pattern=SECRET_REFERENCE_PATTERN)
    optional: bool = False

    @model_validator(mode="before")
    @classmethod
    def _normalize_secrets(cls, data: Any) -> Any:
        """Convert `token_env` to a reference, and mask plain secrets.

        Masking keeps secrets out of error messages.
        """
        if not isinstance(data, dict):
            return data
        data = drop_nulls(data, ("token_env", *cls.model_fields))
        fields = {key: value for key, value in data.items() if key != "token_env"}
        if data.get("token_env"):
            suffix = "API_KEY" if fields.get("type") == "api_key" else "TOKEN"
            fields.setdefault("token", f"env:{data['token_env']}_{suffix}")
        plain = [
            name
            for name in ("token", "password")
            if name in fields and not re.match(SECRET_REFERENCE_PATTERN, str(fields[name]))
        ]
        return fields | dict.fromkeys(plain, "a plain value, not shown")

    @model_validator(mode="after")
    def _check_required_secrets(self) -> "AuthConfig":
        needed = {"bearer": ("token",), "api_key": ("token",), "basic": ("username", "password")}.get(self.type, ())
        missing = [name for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(f"auth of type {self.type} needs {' and '.join(missing)}; give a secret as env:NAME")
        return self


ParameterLocation = Literal["path", "query", "header", "cookie", "body"]
"""Part of a request that a parameter can fill."""

ParameterStyle = Literal["", "simple", "form", "spaceDelimited", "pipeDelimited", "deepObject", "json"]
"""Serialization style of an array or object outside of a body, as in OpenAPI."""


class ParameterPlacement(FrozenModel):
    """Where a parameter is sent, and its serialization.

    Attributes:
        name: Name in the request; the parameter's own by default.
        style: Serialization of arrays and objects, as in OpenAPI. "" is the default of the place (`form` in a query
            or cookie, `simple` in a path or header); `json` sends JSON text.
        explode: As in OpenAPI, None for the default of the style.
    """

    place: ParameterLocation
    name: str = ""
    style: ParameterStyle = ""
    explode: bool | None = None


class EndpointConfig(FrozenModel):
    """The request of an HTTP tool.

    Attributes:
        url_template: May contain `{param}` in its path and query, each filled with one percent-encoded segment.
            `internal://NAME` is a built-in tool.
        headers: Sent unchanged, except that `env:NAME`, alone or as the last word, is read from the environment.
        timeout: In seconds.
        places: Where other parameters are sent. The default is the query for GET, HEAD and DELETE, else the body.
        body_type: Body parameters form one JSON object, form or multipart body.
        body_param: The one parameter that is the whole body; required for `text` and `binary`.
        body_required: Send an empty object where no parameter fills the body.
        files: Names, in the request, of the fields that are files.
        defaults: Send the defaults of the parameters' schemas where a call leaves them out. Parameters of the path
            always have them.
        redirects: Maximum number of redirects to follow.
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
    defaults: bool = False
    redirects: int = Field(default=0, ge=0, le=5)

    @model_validator(mode="before")
    @classmethod
    def _normalize_fields(cls, data: Any) -> Any:
        """Convert the method to upper case, and drop nulls and a time-out of 0."""
        fields = drop_nulls(data, cls.model_fields)
        if not isinstance(fields, dict):
            return fields
        fields = {key: value for key, value in fields.items() if (key, value) != ("timeout", 0)}
        method = fields.get("method")
        return {**fields, "method": method.upper()} if isinstance(method, str) else fields


class ResponseTransform(FrozenModel):
    """What a model receives of a response.

    `extract` is a JMESPath expression. At most `max_bytes` of the body are read, and at most `max_characters` of the
    result are returned (None for the library's limit). Of a response with any of `headers`, such as the `Link` to the
    next page, the result is `{"headers": …, "body": …}`.
    """

    extract: str = ""
    headers: tuple[str, ...] = ()
    max_characters: int | None = Field(default=None, gt=0)
    max_bytes: int = Field(default=5_000_000, gt=0)


class HttpToolSpec(ToolSpec):
    """An HTTP endpoint as a tool. `parameters` is a JSON Schema of type object."""

    tool_type: Literal["http"] = "http"
    endpoint: EndpointConfig
    parameters: Parameters = NO_PARAMETERS
    response_transform: ResponseTransform = ResponseTransform()


class McpServerSpec(ToolSpec):
    """An MCP server: a `command` (stdio) or a `url` (streamable HTTP).

    Models see its tools as `tool_id.tool`.

    Attributes:
        env: Environment of the program, in addition to the few variables that every program needs.
        headers: Like `env`, they may contain references: `env:NAME`, alone or as the last word (`Bearer env:NAME`).
        connect_timeout: In seconds, including the start of the program.
        pin: Whether a new tool is accepted ("accept") or waits for the owner ("ask"). A changed tool always waits.

    `endpoint` is read as `url`. The entries of `server_config` and `connection_params` are read as fields of the
    spec, a `timeout` of the connection as `connect_timeout`.
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
                f"{parts.scheme}:// is not supported: MCP has no WebSocket transport. Use the server's "
                "streamable HTTP address (http://HOST:PORT/mcp), or the `command` that starts it (stdio)."
            )
        if url and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError(f"{url!r} is not an http:// or https:// address of a server.")
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                "The URL contains a user name or password. Put them into `headers`, as env:NAME references."
            )
        return url

    @model_validator(mode="after")
    def _check_one_transport(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("An MCP server has either a `command` (stdio) or a `url` (streamable HTTP).")
        return self


class SkillSpec(ToolSpec):
    """A skill: a folder with a `SKILL.md`."""

    tool_type: Literal["skill"] = "skill"
    path: Path


AnyToolSpec = Annotated[
    FunctionToolSpec | HttpToolSpec | McpServerSpec | SkillSpec,
    Discriminator("tool_type"),
    BeforeValidator(normalize_spec),
]
"""A spec of any kind, identified by `tool_type`, or by its fields where that is missing."""


class AgentToolBinding(FrozenModel):
    """The binding of a tool to an agent.

    `config` replaces fields of the tool's spec.
    """

    tool_id: str
    enabled: bool = True
    config: dict[str, Any] = {}


class AgentLimits(FrozenModel):
    """Limits of one run.

    None is no limit. `seconds` is wall time; `cost` needs the model's price. Of calls in a row with the same arguments
    and the same result, each from `noted_repeats` on has a note in its result, and `repeats` of them end the run.
    """

    turns: int | None = Field(default=50, gt=0)
    tool_calls: int | None = Field(default=200, ge=0)
    tokens: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=600.0, gt=0, allow_inf_nan=False)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    noted_repeats: int | None = Field(default=10, gt=0)
    repeats: int | None = Field(default=30, gt=0)


class AgentSpec(FrozenModel):
    """An agent as data that can be stored, sent and written as YAML.

    Attributes:
        model: Name of a model, "" for the default model of the service.
        tool_choice: "auto", "none", "required" or the id of a tool.
        needs_approval: Ids of tools whose calls need human approval, in addition to tools that require it themselves.
        database: The database for questions about data.
        semantics: The semantic model for questions about data.
        learning: Which failures are stored and used: those of this agent for the same API key's owner, with values
            ("own"), or those of all the owner's agents with this setting, without values ("shared").
        max_tool_tokens: Tokens of tool definitions that the model gets in full. Of more tools, it gets those that match
            the task, a search tool and the names of the others. None for a tenth of the model's context window.
        after_untrusted: What happens to calls of tools that are not `read_only` once a result of a tool with
            `untrusted_output` is in the conversation: they run, need human approval, or are refused.
        assisted: Whether assistance for small models is on; None for the profile of the model.
    """

    agent_id: str = Field(pattern=ID_PATTERN, max_length=MAX_ID_CHARACTERS)
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
    learning: Literal["own", "shared"] = "own"
    max_tool_tokens: int | None = Field(default=None, ge=0)
    after_untrusted: AfterUntrusted = "allow"
    assisted: bool | None = None


class Registration(FrozenModel):
    """The result of registering a spec.

    `accepted` are names for models; `rejected` maps rejected tools to the reason.
    """

    tool_id: str
    accepted: tuple[str, ...] = ()
    rejected: dict[str, str] = {}

    @property
    def has_tools(self) -> bool:
        """Whether at least one tool can be called."""
        return bool(self.accepted)
