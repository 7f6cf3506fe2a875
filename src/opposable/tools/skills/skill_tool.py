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
from opposable.safety.sandbox.limits import Finished
from opposable.safety.sandbox.sandbox import Sandbox
from opposable.tools.argument_validation import Check, checker
from opposable.tools.skills.loader import FREE_ARGUMENTS, Script, Skill, load_skill
from opposable.tools.tool_names import safe_name

_INSIDE = "/skill"
_PAGE = 15_000
_TOLD = 2_000
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_READ: dict[str, Any] = {
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


def skill_tools(skill: Skill, sandbox: Sandbox, timeout: float | None = None) -> list[SkillTool]:
    """The tools of a skill.

    `name` brings its instructions and the list of its files, `name.read` a file, and `name.script` runs a script in the
    sandbox. A skill that is one script is run by `name` itself, and `name.instructions` brings its text.

    Raises: `BadInput` when a script's parameters are no JSON Schema.
    """
    made = [_scripted(skill, script, sandbox, timeout) for script in skill.scripts]
    if skill.main is not None:
        main = dataclasses.replace(skill.main, description=skill.description)
        made.insert(0, _scripted(skill, main, sandbox, timeout, skill.skill_id))
    name = skill.skill_id if skill.main is None else f"{skill.skill_id}.instructions"
    described = skill.description if skill.main is None else f"Read how to use {skill.skill_id}."
    if skill.main is None or skill.instructions():
        made.insert(0, _tool(name, described, _NOTHING, timeout, lambda _: _told(skill)))
    others = [file for file in skill.files if file not in ("SKILL.md", "skill.json")]
    if others and skill.main is None:
        described = f"Read a file of the skill {skill.skill_id}."
        check = checker(_READ)
        name = f"{skill.skill_id}.read"
        made.append(_tool(name, described, _READ, timeout, lambda given: _read(skill, given, check)))
    return made


def tools_of_spec(spec: SkillSpec, sandbox: Sandbox) -> list[SkillTool]:
    """The tools of the skill a spec names, under the spec's own id and description. Raises: `BadInput`."""
    skill = load_skill(spec.path)
    described = spec.description or skill.description
    return skill_tools(dataclasses.replace(skill, skill_id=spec.tool_id, description=described), sandbox, spec.timeout)


def _tool(
    name: str,
    description: str,
    parameters: dict[str, Any],
    timeout: float | None,
    action: Callable[[dict[str, Any]], Awaitable[Any]],
) -> SkillTool:
    return SkillTool(name, ToolDefinition(safe_name(name), description[:1024], parameters), timeout, action)


async def _told(skill: Skill) -> dict[str, Any]:
    """The instructions, and what lies beside them."""
    text = await asyncio.to_thread(skill.instructions)
    told: dict[str, Any] = {"skill": skill.skill_id, "instructions": text}
    if others := [file for file in skill.files if file not in ("SKILL.md", "skill.json")]:
        told["files"] = others
    if skill.scripts:
        told["scripts"] = {safe_name(f"{skill.skill_id}.{one.name}"): one.description for one in skill.scripts}
    return told


async def _read(skill: Skill, given: dict[str, Any], check: Check) -> dict[str, Any]:
    check(given)
    start = given.get("offset", 0)
    text = await asyncio.to_thread(skill.folder.text, given["path"])
    if start and start >= len(text):
        problem = f"must be less than {len(text)}, the length of the file"
        raise InvalidArguments((FieldProblem("offset", problem, str(start)),))
    page: dict[str, Any] = {"path": given["path"], "text": text[start : start + _PAGE]}
    if start + _PAGE < len(text):
        page["more"] = f"The file has {len(text):,} characters; read on with offset={start + _PAGE}."
    return page


def _scripted(skill: Skill, script: Script, sandbox: Sandbox, timeout: float | None, name: str = "") -> SkillTool:
    tool_id = name or f"{skill.skill_id}.{script.name}"
    try:
        check = checker(script.parameters)
    except BadInput as error:
        raise BadInput(f"{tool_id}: {error}") from error

    async def run(given: dict[str, Any]) -> Any:
        check(given)
        words, stdin = _handed_over(script, given)
        with tempfile.TemporaryDirectory(prefix="skill-") as folder:
            await asyncio.to_thread(skill.folder.copy_to, Path(folder))
            seconds = timeout or sandbox.limits.seconds
            limits = dataclasses.replace(sandbox.limits, seconds=seconds)
            program = [sandbox.python] if script.path.endswith(".py") else ["/bin/sh"]
            command = [*program, f"{_INSIDE}/{script.path}", *words]
            done = await sandbox.run(command, stdin=stdin, readable={_INSIDE: Path(folder)}, limits=limits)
        return _normalised(tool_id, done)

    return _tool(tool_id, script.description, script.parameters, timeout, run)


def _handed_over(script: Script, given: dict[str, Any]) -> tuple[list[str], bytes]:
    """The words behind the script's name and the bytes on its stdin."""
    if script.how == "json":
        return [], orjson.dumps(given)
    if script.parameters is FREE_ARGUMENTS:
        return [str(word) for word in given.get("arguments", ())], str(given.get("input", "")).encode()
    words: list[str] = []
    for name, value in given.items():
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


def _normalised(name: str, done: Finished) -> Any:
    """JSON as its value, anything else as text. Raises: `ToolFailed`, `TimeoutError`."""
    said = done.stderr.strip()[-_TOLD:]
    if done.breach in ("time", "cpu"):
        raise TimeoutError(f"the script took too long and was stopped after {done.seconds:g} seconds")
    if done.breach == "output":
        raise ToolFailed(f"{name} was stopped: it wrote more than it may. It began: {done.stdout[:200]}")
    if done.breach is not None:
        raise ToolFailed(f"{name} was killed, perhaps for using too much. {said}".rstrip())
    if done.exit_code:
        lines = (said or done.stdout.strip()[-_TOLD:] or "It said nothing.").splitlines()
        told = lines[-1] if lines and lines[0].startswith("Traceback") else "\n".join(lines)
        raise ToolFailed(f"{name} ended with exit code {done.exit_code}: {told}")
    text = done.stdout.strip()
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text or (said or "It ran and wrote nothing.")
