"""The tools of a skill: its instructions, its files and its scripts."""

import asyncio
import contextlib
import dataclasses
import functools
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from opposable.domain.argument_problems import must_be
from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments, ToolFailed
from opposable.domain.json_text import dump_json, parse_json
from opposable.domain.specs import SkillSpec
from opposable.domain.tools import ToolDefinition
from opposable.safety.sandbox.limits import ProcessResult
from opposable.safety.sandbox.sandbox import Sandbox
from opposable.tools.json_schema_validation import ValidateArguments, compile_validator
from opposable.tools.skills.loader import FREE_ARGUMENTS, Skill, SkillScript, load_skill
from opposable.tools.tool_names import to_safe_name

_SANDBOX_FOLDER = "/skill"
_PAGE_CHARACTERS = 15_000
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
_READ_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "the file, such as references/guide.md"},
        "offset": {"type": "integer", "minimum": 0, "description": "first character to read, from 0"},
    },
    "required": ["path"],
}


@dataclasses.dataclass(frozen=True, slots=True)
class SkillTool:
    """One action of a skill, as a `Tool`. `check` validates its arguments."""

    tool_id: str
    definition: ToolDefinition
    timeout: float | None
    check: ValidateArguments
    action: Callable[[dict[str, Any]], Awaitable[Any]]

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the result of the action. Raises: `ToolError`; `TimeoutError` for a script that took too long."""
        return await self.action(arguments)


def create_skill_tools(skill: Skill, sandbox: Sandbox, timeout: float | None = None) -> list[SkillTool]:
    """Create the tools of a skill.

    - `skill` returns its instructions and the list of its files.
    - `skill.read` reads a file. It is `skill.read_file` if a script is named `read`.
    - `skill.SCRIPT` runs a script in the sandbox.

    A skill that is a single script is run by `skill` itself, and `skill.instructions` returns its instructions.

    Raises:
        BadInput: The parameters of a script are not a JSON Schema.
    """
    tools = [_create_script_tool(skill, script, sandbox, timeout) for script in skill.scripts]
    if skill.main_script is not None:
        main_script = dataclasses.replace(skill.main_script, description=skill.description)
        tools.insert(0, _create_script_tool(skill, main_script, sandbox, timeout, skill.skill_id))
        if skill.read_instructions():
            tools.insert(0, _create_instructions_tool(skill, timeout))
        return tools
    tools.insert(0, _create_instructions_tool(skill, timeout))
    if _list_reference_files(skill):
        name = "read_file" if any(script.name == "read" for script in skill.scripts) else "read"
        tool_id, description = f"{skill.skill_id}.{name}", f"Read a file of the skill {skill.skill_id}."
        tools.append(
            _create_tool(tool_id, description, _READ_PARAMETERS, timeout, functools.partial(_read_file, skill))
        )
    return tools


def tools_from_skill_spec(spec: SkillSpec, sandbox: Sandbox) -> list[SkillTool]:
    """Create the tools of the skill that a spec names, under the spec's id and description. Raises: `BadInput`."""
    skill = load_skill(spec.path)
    description = spec.description or skill.description
    skill = dataclasses.replace(skill, skill_id=spec.tool_id, description=description)
    return create_skill_tools(skill, sandbox, spec.timeout)


def _create_tool(
    tool_id: str,
    description: str,
    parameters: dict[str, Any],
    timeout: float | None,
    action: Callable[[dict[str, Any]], Awaitable[Any]],
) -> SkillTool:
    definition = ToolDefinition(to_safe_name(tool_id), description[:1024], parameters)
    return SkillTool(tool_id, definition, timeout, compile_validator(parameters), action)


def _create_instructions_tool(skill: Skill, timeout: float | None) -> SkillTool:
    if skill.main_script is None:
        tool_id, description = skill.skill_id, skill.description
    else:
        tool_id, description = f"{skill.skill_id}.instructions", f"Read how to use {skill.skill_id}."
    return _create_tool(tool_id, description, _NO_PARAMETERS, timeout, lambda _: _describe_skill(skill))


async def _describe_skill(skill: Skill) -> dict[str, Any]:
    """Return the instructions, and the names of the skill's files and scripts."""
    description: dict[str, Any] = {
        "skill": skill.skill_id,
        "instructions": await asyncio.to_thread(skill.read_instructions),
    }
    if files := _list_reference_files(skill):
        description["files"] = files
    if skill.scripts:
        description["scripts"] = {
            to_safe_name(f"{skill.skill_id}.{script.name}"): script.description for script in skill.scripts
        }
    return description


def _list_reference_files(skill: Skill) -> list[str]:
    return [file for file in skill.files if file not in ("SKILL.md", "skill.json")]


async def _read_file(skill: Skill, arguments: dict[str, Any]) -> dict[str, Any]:
    path, start = arguments["path"], arguments.get("offset", 0)
    text = await asyncio.to_thread(skill.folder.read_text, path)
    if start and start >= len(text):
        problem = must_be(f"less than {len(text)}, the length of the file")
        raise InvalidArguments((FieldProblem("offset", problem, str(start)),))
    end = start + _PAGE_CHARACTERS
    page: dict[str, Any] = {"path": path, "text": text[start:end]}
    if end < len(text):
        page["more"] = f"The file has {len(text):,} characters; read on with offset={end}."
    return page


def _create_script_tool(
    skill: Skill, script: SkillScript, sandbox: Sandbox, timeout: float | None, tool_id: str = ""
) -> SkillTool:
    tool_id = tool_id or f"{skill.skill_id}.{script.name}"

    async def run(arguments: dict[str, Any]) -> Any:
        options, stdin = _to_command_line(script, arguments)
        with tempfile.TemporaryDirectory(prefix="skill-") as folder:
            copying = asyncio.create_task(asyncio.to_thread(skill.folder.copy_to, Path(folder)))
            try:
                await asyncio.shield(copying)
            finally:  # the thread of a cancelled call must not write into a folder that is removed
                await asyncio.wait({copying})
            file = Path(folder) / script.path
            if not file.exists():  # the skill has changed
                raise ToolFailed(f"{script.path} of the skill {skill.skill_id} was deleted, or is a link.")
            limits = dataclasses.replace(sandbox.limits, seconds=timeout or sandbox.limits.seconds)
            program = [sandbox.python_program] if file.suffix == ".py" else _get_shell(file)
            command = [*program, f"{_SANDBOX_FOLDER}/{script.path}", *options]
            mounts = {_SANDBOX_FOLDER: Path(folder)}
            finished = await sandbox.run(command, stdin=stdin, read_only_mounts=mounts, limits=limits)
        return _parse_output(tool_id, finished)

    try:
        return _create_tool(tool_id, script.description, script.parameters, timeout, run)
    except BadInput as error:
        raise BadInput(f"{tool_id}: {error}") from error


def _get_shell(script: Path) -> list[str]:
    """Return the program and the options in the `#!` line of a script, else `/bin/sh`, as for a missing program."""
    with script.open(encoding="utf-8", errors="replace") as file:
        first_line = file.readline()
    words = first_line.removeprefix("#!").split() if first_line.startswith("#!") else []
    if words and words[0].endswith("/env"):
        words.pop(0)
    program = shutil.which(words[0]) if words else None
    return [program, *words[1:]] if program else ["/bin/sh"]


def _to_command_line(script: SkillScript, arguments: dict[str, Any]) -> tuple[list[str], bytes]:
    """Return a script's command line options and its standard input.

    The underscores of a name become dashes. A list becomes one option per item. False is left out, unless the declared
    default is true.
    """
    if script.argument_style == "json":
        return [], dump_json(arguments)
    if script.parameters is FREE_ARGUMENTS:
        return [str(word) for word in arguments.get("arguments", ())], str(arguments.get("input", "")).encode()
    options: list[str] = []
    for name, value in arguments.items():
        schema = script.parameters.get("properties", {}).get(name)
        is_on_by_default = isinstance(schema, dict) and schema.get("default") is True
        if value is None or (value is False and not is_on_by_default):
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            options.append(option)
            continue
        # With "=", a value that begins with a dash is still parsed as a value.
        items = value if isinstance(value, list) else [value]
        options += [f"{option}={item if isinstance(item, str) else dump_json(item).decode()}" for item in items]
    return options, b""


def _parse_output(tool_id: str, finished: ProcessResult) -> Any:
    """Return a script's output: the value of a JSON object or list, anything else as text.

    Raises:
        ToolFailed: The script failed.
        TimeoutError: It took too long.
    """
    stderr = finished.stderr.strip()
    if finished.breach in ("time", "cpu"):
        raise TimeoutError(f"the script took too long and was stopped after {finished.seconds:g} seconds")
    if finished.breach == "output":
        raise ToolFailed(f"{tool_id} was stopped: it wrote more than it may. It began: {finished.stdout[:200]}")
    if finished.breach is not None:
        raise ToolFailed(f"{tool_id} was killed, perhaps for using too much. {stderr}".rstrip())
    if finished.exit_code:
        message = "\n".join(filter(None, (finished.stdout.strip(), finished.error_text))) or "It said nothing."
        raise ToolFailed(f"{tool_id} ended with exit code {finished.exit_code}: {message}")
    text = finished.stdout.strip()
    if not text:
        return stderr or "It ran and wrote nothing."
    if text.startswith(("{", "[")):
        with contextlib.suppress(ValueError):
            return parse_json(text)
    return finished.stdout.rstrip("\n")
