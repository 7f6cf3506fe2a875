"""The manifest of a skill: the front matter of its `SKILL.md`, or a `skill.json`."""

import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from opposable.domain.errors import BadInput
from opposable.domain.json_text import check_unique_keys
from opposable.domain.validation_problems import describe_problems
from opposable.domain.yaml_checks import check_yaml_events

_FENCE = "---"


class LenientModel(BaseModel):
    """A model that ignores unknown fields."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


def _normalize_script_path(path: str) -> str:
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError("must be a path inside the skill's folder, such as scripts/run.py")
    return "/".join(part for part in parts if part != ".")


class ScriptManifest(LenientModel):
    """The declaration of a script.

    `path` is relative to the skill's folder. `parameters` is a JSON Schema of type object. `arguments` says how the
    script gets its arguments: "json" as one object on standard input, "argv" as `--name=value`.
    """

    path: Annotated[str, AfterValidator(_normalize_script_path)] = Field(
        validation_alias=AliasChoices("path", "script", "file")
    )
    name: str = ""
    description: str = ""
    parameters: dict[str, Any] | None = Field(
        default=None, validation_alias=AliasChoices("parameters", "input_schema", "inputs")
    )
    arguments: Literal["json", "argv"] = "json"


class SkillManifest(LenientModel):
    """The manifest of a skill. `script` and `parameters` are set for a skill that is a single script."""

    name: str = Field(default="", validation_alias=AliasChoices("name", "id", "skill_id"), max_length=200)
    description: str = Field(default="", max_length=4000)
    version: str = "1.0.0"
    metadata: dict[str, Any] = {}
    allowed_tools: tuple[str, ...] = Field(default=(), validation_alias=AliasChoices("allowed-tools", "allowed_tools"))
    scripts: tuple[ScriptManifest, ...] = ()
    script: str = Field(default="", validation_alias=AliasChoices("script", "entry", "entrypoint"))
    parameters: dict[str, Any] | None = Field(
        default=None, validation_alias=AliasChoices("parameters", "input_schema", "inputs")
    )
    arguments: Literal["json", "argv"] = "json"

    @field_validator("script")
    @classmethod
    def _normalize_script(cls, path: str) -> str:
        return _normalize_script_path(path) if path else ""

    @field_validator("version", mode="before")
    @classmethod
    def _format_date(cls, value: Any) -> Any:
        return str(value) if isinstance(value, datetime.date) else value  # YAML reads 2025-11-15 as a date

    @field_validator("allowed_tools", mode="before")
    @classmethod
    def _split_tool_names(cls, value: Any) -> Any:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value or ()

    @field_validator("metadata", mode="before")
    @classmethod
    def _default_metadata(cls, value: Any) -> Any:
        return value or {}

    @field_validator("scripts", mode="before")
    @classmethod
    def _normalize_scripts(cls, value: Any) -> Any:
        if value and not isinstance(value, list):
            raise ValueError("must be a list")
        return [{"path": script} if isinstance(script, str) else script for script in value or ()]


def parse_front_matter(text: str) -> tuple[SkillManifest, str]:
    """Parse a `SKILL.md` into its manifest and its instructions. Raises: `BadInput`."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if not lines or lines[start].strip() != _FENCE:
        return SkillManifest(), text
    end = next((i for i, line in enumerate(lines) if i > start and line.strip() == _FENCE), None)
    if end is None:
        raise BadInput("its front matter begins with --- and does not end. Add a closing ---.")
    front_matter = "".join(lines[:start] + lines[start + 1 : end])
    return _validate_manifest(_parse_yaml(front_matter)), "".join(lines[end + 1 :]).strip()


def parse_json_manifest(text: str) -> SkillManifest:
    """Parse a `skill.json`. Raises: `BadInput`."""
    check_unique_keys(text.encode("utf-8", "replace"), "its skill.json")
    try:
        return _validate_manifest(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"its skill.json is not valid JSON: {error}.") from error


def _validate_manifest(fields: Any) -> SkillManifest:
    if not isinstance(fields, dict):
        raise BadInput("its front matter must be fields and values, such as name: and description:.")
    try:
        return SkillManifest.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"a field is not valid: {describe_problems(error, SkillManifest, limit=1)}.") from error


def _parse_yaml(text: str) -> Any:
    try:
        import yaml  # lazy: the extra "skills"
    except ImportError as error:
        raise BadInput('Reading skills needs the extra "skills": pip install "opposable[skills]".') from error
    try:
        events = list(yaml.parse(text, Loader=yaml.SafeLoader))
        check_yaml_events(events)
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            raise BadInput("its front matter uses YAML aliases, which are not supported.")
        return yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 2}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise BadInput(f"its front matter is not valid YAML{line}: {problem}.") from error
