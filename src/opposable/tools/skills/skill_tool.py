"""A skill as tools: its instructions, its files, and each of its scripts."""

import asyncio
import dataclasses
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments, ToolFailed
from opposable.domain.specs import SkillSpec
from opposable.domain.tools import ToolDefinition
from opposable.safety.sandbox.limits import ProcessResult
from opposable.safety.sandbox.sandbox import Sandbox
from opposable.tools.argument_validation import ValidateArguments, compile_validator
from opposable.tools.skills.loader import FREE_ARGUMENTS, Skill, SkillScript, load_skill
from opposable.tools.tool_names import to_safe_name

_SANDBOX_FOLDER = "/skill"
_PAGE_CHARACTERS = 15_000
_MAX_ERROR_CHARACTERS = 2_000
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
    """One action of a skill, as a `Tool`."""

    tool_id: str
    definition: ToolDefinition
    timeout: float | None
    action: Callable[[dict[str, Any]], Awaitable[Any]]

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """What the action brings. Raises: `ToolError`; `TimeoutError` for a script that took too long."""
        return await self.action(arguments)


def create_skill_tools(skill: Skill, sandbox: Sandbox, timeout: float | None = None) -> list[SkillTool]:
    """The tools of a skill.

    `name` brings its instructions and the list of its files, `name.read` a file, and `name.script` runs a script in the
    sandbox. A skill that is one script is run by `name` itself, and `name.instructions` brings its text.

    Raises: `BadInput` when a script's parameters are no JSON Schema.
    """
    made = [_create_script_tool(skill, script, sandbox, timeout) for script in skill.scripts]
    if skill.main_script is not None:
        main = dataclasses.replace(skill.main_script, description=skill.description)
        made.insert(0, _create_script_tool(skill, main, sandbox, timeout, skill.skill_id))
    name = skill.skill_id if skill.main_script is None else f"{skill.skill_id}.instructions"
    described = skill.description if skill.main_script is None else f"Read how to use {skill.skill_id}."
    if skill.main_script is None or skill.read_instructions():
        made.insert(0, _create_tool(name, described, _NO_PARAMETERS, timeout, lambda _: _describe_skill(skill)))
    others = [file for file in skill.files if file not in ("SKILL.md", "skill.json")]
    if others and skill.main_script is None:
        described = f"Read a file of the skill {skill.skill_id}."
        check = compile_validator(_READ_PARAMETERS)
        name = f"{skill.skill_id}.read"
        made.append(
            _create_tool(name, described, _READ_PARAMETERS, timeout, lambda given: _read_file(skill, given, check))
        )
    return made


def tools_from_skill_spec(spec: SkillSpec, sandbox: Sandbox) -> list[SkillTool]:
    """The tools of the skill a spec names, under the spec's own id and description. Raises: `BadInput`."""
    skill = load_skill(spec.path)
    described = spec.description or skill.description
    return create_skill_tools(
        dataclasses.replace(skill, skill_id=spec.tool_id, description=described), sandbox, spec.timeout
    )


def _create_tool(
    name: str,
    description: str,
    parameters: dict[str, Any],
    timeout: float | None,
    action: Callable[[dict[str, Any]], Awaitable[Any]],
) -> SkillTool:
    return SkillTool(name, ToolDefinition(to_safe_name(name), description[:1024], parameters), timeout, action)


async def _describe_skill(skill: Skill) -> dict[str, Any]:
    """The instructions, and what lies beside them."""
    text = await asyncio.to_thread(skill.read_instructions)
    told: dict[str, Any] = {"skill": skill.skill_id, "instructions": text}
    if others := [file for file in skill.files if file not in ("SKILL.md", "skill.json")]:
        told["files"] = others
    if skill.scripts:
        told["scripts"] = {to_safe_name(f"{skill.skill_id}.{one.name}"): one.description for one in skill.scripts}
    return told


async def _read_file(skill: Skill, arguments: dict[str, Any], check: ValidateArguments) -> dict[str, Any]:
    check(arguments)
    start = arguments.get("offset", 0)
    text = await asyncio.to_thread(skill.folder.read_text, arguments["path"])
    if start and start >= len(text):
        problem = f"must be less than {len(text)}, the length of the file"
        raise InvalidArguments((FieldProblem("offset", problem, str(start)),))
    page: dict[str, Any] = {"path": arguments["path"], "text": text[start : start + _PAGE_CHARACTERS]}
    if start + _PAGE_CHARACTERS < len(text):
        page["more"] = f"The file has {len(text):,} characters; read on with offset={start + _PAGE_CHARACTERS}."
    return page


def _create_script_tool(
    skill: Skill, script: SkillScript, sandbox: Sandbox, timeout: float | None, name: str = ""
) -> SkillTool:
    tool_id = name or f"{skill.skill_id}.{script.name}"
    try:
        check = compile_validator(script.parameters)
    except BadInput as error:
        raise BadInput(f"{tool_id}: {error}") from error

    async def run(given: dict[str, Any]) -> Any:
        check(given)
        words, stdin = _to_command_line(script, given)
        with tempfile.TemporaryDirectory(prefix="skill-") as folder:
            await asyncio.to_thread(skill.folder.copy_to, Path(folder))
            seconds = timeout or sandbox.limits.seconds
            limits = dataclasses.replace(sandbox.limits, seconds=seconds)
            program = [sandbox.python_program] if script.path.endswith(".py") else ["/bin/sh"]
            command = [*program, f"{_SANDBOX_FOLDER}/{script.path}", *words]
            done = await sandbox.run(
                command, stdin=stdin, read_only_mounts={_SANDBOX_FOLDER: Path(folder)}, limits=limits
            )
        return _parse_output(tool_id, done)

    return _create_tool(tool_id, script.description, script.parameters, timeout, run)


def _to_command_line(script: SkillScript, arguments: dict[str, Any]) -> tuple[list[str], bytes]:
    """The words behind the script's name and the bytes on its stdin."""
    if script.argument_style == "json":
        return [], orjson.dumps(arguments)
    if script.parameters is FREE_ARGUMENTS:
        return [str(word) for word in arguments.get("arguments", ())], str(arguments.get("input", "")).encode()
    words: list[str] = []
    for name, value in arguments.items():
        if value is None or value is False:
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
            continue
        # with = a value that begins with a dash stays a value
        words.extend(
            f"{option}={one if isinstance(one, str) else orjson.dumps(one).decode()}"
            for one in (value if isinstance(value, list) else [value])
        )
    return words, b""


def _parse_output(name: str, finished: ProcessResult) -> Any:
    """JSON as its value, anything else as text. Raises: `ToolFailed`, `TimeoutError`."""
    said = finished.stderr.strip()[-_MAX_ERROR_CHARACTERS:]
    if finished.breach in ("time", "cpu"):
        raise TimeoutError(f"the script took too long and was stopped after {finished.seconds:g} seconds")
    if finished.breach == "output":
        raise ToolFailed(f"{name} was stopped: it wrote more than it may. It began: {finished.stdout[:200]}")
    if finished.breach is not None:
        raise ToolFailed(f"{name} was killed, perhaps for using too much. {said}".rstrip())
    if finished.exit_code:
        lines = (said or finished.stdout.strip()[-_MAX_ERROR_CHARACTERS:] or "It said nothing.").splitlines()
        told = lines[-1] if lines and lines[0].startswith("Traceback") else "\n".join(lines)
        raise ToolFailed(f"{name} ended with exit code {finished.exit_code}: {told}")
    text = finished.stdout.strip()
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text or (said or "It ran and wrote nothing.")
