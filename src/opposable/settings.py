"""The settings a user may give by the environment (OPPOSABLE_…) or a `.env` file."""

from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings, read once and passed down as values.

    `model` is a name for `models.build`; `home` is where models and state are kept (None: the user's cache);
    `roots` are the folders that the file tools may read, separated as in a JSON list. `prices` gives for a model's name
    what a million tokens cost, read and written, in the currency that `cost`, the most one run may cost, is in.
    `database_url` and `redis_url` are where tools, agents, conversations and records are kept (by default a SQLite file
    in `home`, or the user's data folder). `private_hosts` are loopback and private addresses that HTTP tools may call,
    `api_hosts` what `api_caller` may, `modules` what specs of functions may name.

    Of tools that come over HTTP: `secrets` are the environment variables they may refer to (`NAME`, or `NAME@HOST` for
    one host), `programs` lets MCP servers be started as programs, `skills` are the folders that skills are taken from.
    `origins` are the web pages (`https://HOST`) that may ask the service; `log` is how it logs; `traces` sends spans to
    where OpenTelemetry's own variables say, with what was said in them if `traces_content` is set.
    """

    model_config = SettingsConfigDict(env_prefix="OPPOSABLE_", env_file=".env", env_ignore_empty=True, extra="ignore")

    model: str = "local"
    home: Path | None = None
    roots: tuple[Path, ...] = (Path(),)
    turns: int = Field(default=20, gt=0)
    tool_calls: int = Field(default=50, ge=0)
    seconds: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    prices: dict[str, tuple[float, float]] = {}
    database_url: SecretStr = Field(
        default=SecretStr(""), validation_alias=AliasChoices("OPPOSABLE_DATABASE_URL", "DATABASE_URL", "database_url")
    )
    redis_url: SecretStr = Field(
        default=SecretStr(""), validation_alias=AliasChoices("OPPOSABLE_REDIS_URL", "REDIS_URL", "redis_url")
    )
    private_hosts: tuple[str, ...] = ()
    api_hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    programs: bool = False
    skills: tuple[Path, ...] = ()
    origins: tuple[str, ...] = ()
    log: Literal["text", "json"] = "text"
    traces: bool = False
    traces_content: bool = False
