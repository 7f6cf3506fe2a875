"""Settings from environment variables (OPPOSABLE_…), and preferences from a `.env` file."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, DotEnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

ENV_FILE_SETTINGS = frozenset(
    ("model", "assist", "api", "images", "turns", "tool_calls", "seconds", "tokens", "cost", "prices", "log")
)
"""The settings that may be in a `.env` file. It may come with a foreign project, so it grants no access and names no
store, server or file."""

TokenPrices = Annotated[
    tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...], Field(min_length=2, max_length=3)
]
"""The price of a million input tokens, output tokens and, if it is another one, cached input tokens."""


def is_env_file_setting(name: str, value: str | None) -> bool:
    """Return whether a setting may be in a `.env` file. A model may if it is not a URL or a file."""
    return name in ENV_FILE_SETTINGS and not (name == "model" and value and ("://" in value or "local:" in value))


class Settings(BaseSettings):
    """Settings, read once and passed down as values. A `.env` file can set those of `ENV_FILE_SETTINGS`.

    Attributes:
        model: The name of the model, as for `--model`.
        assist: Whether assistance for small models is on (default: by the model's profile).
        images: What happens to images and files in messages (default: by the model's profile).
        api: The API of servers of OpenAI and compatible ones (default: responses for reasoning models at OpenAI).
        home: The folder of models and state (default: the user's cache and data folders).
        roots: The folders that file tools may read, as a JSON list.
        turns: The maximum number of model replies in a run.
        tool_calls: The maximum number of tool calls in a run.
        seconds: The maximum duration of a run.
        tokens: The maximum number of tokens of a run.
        cost: The maximum cost of a run, in the currency of `prices`.
        prices: The prices of a million tokens by model name.
        database_url: The store of tools, agents, conversations and records (default: a SQLite file).
        retention_days: Days after which the service deletes records of runs and tool calls (default: never).
        redis_url: The Redis or Valkey server for conversations and rate limits.
        private_hosts: Loopback and private addresses that HTTP tools may call.
        api_hosts: The hosts that `api_caller` may call.
        modules: The modules and functions that function specs may name.
        secrets: The environment variables that tools registered over HTTP may use (`NAME`, or `NAME@HOST` for one
            host).
        programs: Whether tools registered over HTTP may start MCP servers as programs.
        skills: The folders that skills registered over HTTP are loaded from.
        private_columns: The columns whose values `ask` does not show to the model: "email", "customers.email" or "*".
        origins: The origins (`https://HOST`) of web pages that may call the service.
        log: The format of the log.
        traces: Whether to send spans to the endpoint in OpenTelemetry's environment variables.
        traces_content: Whether spans include messages, arguments and results.
    """

    model_config = SettingsConfigDict(env_prefix="OPPOSABLE_", env_file=".env", env_ignore_empty=True, extra="ignore")

    model: str = "local"
    assist: bool | None = None
    api: Literal["chat", "responses"] | None = None
    images: Literal["accept", "reject", "placeholder"] | None = None
    home: Path | None = None
    roots: tuple[Path, ...] = (Path(),)
    turns: int = Field(default=50, gt=0)
    tool_calls: int = Field(default=200, ge=0)
    seconds: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    prices: dict[str, TokenPrices] = {}
    database_url: SecretStr = SecretStr("")
    retention_days: int | None = Field(default=None, gt=0, le=36_500)
    redis_url: SecretStr = SecretStr("")
    private_hosts: tuple[str, ...] = ()
    api_hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    programs: bool = False
    skills: tuple[Path, ...] = ()
    private_columns: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    log: Literal["text", "json"] = "text"
    traces: bool = False
    traces_content: bool = False

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Leave out of the `.env` file what only the environment may set."""
        assert isinstance(dotenv_settings, DotEnvSettingsSource)
        dotenv_settings.env_vars = {
            name: value
            for name, value in dotenv_settings.env_vars.items()
            if is_env_file_setting(name.lower().removeprefix("opposable_"), value)
        }
        return init_settings, env_settings, dotenv_settings
