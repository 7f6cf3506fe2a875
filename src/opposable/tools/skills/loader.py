"""Finds skills in folders and reads what they say of themselves; instructions are read when they are used."""

import ast
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from opposable.domain.errors import BadInput, ToolError
from opposable.tools.skills.folder import SkillFolder
from opposable.tools.skills.manifest import ScriptManifest, SkillManifest, parse_front_matter, parse_json_manifest

SKILL_DOCUMENT = "SKILL.md"
JSON_MANIFEST = "skill.json"
RUNNABLE_SUFFIXES = (".py", ".sh")
_MAX_DOCUMENT_CHARACTERS = 200_000
_MAX_FOLDER_DEPTH = 4
FREE_ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "arguments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "command line arguments, in order",
        },
        "input": {"type": "string", "description": "text for standard input"},
    },
}
"""What a script takes that declares nothing."""


@dataclass(frozen=True, slots=True)
class SkillScript:
    """A script of a skill. `how` is "json" (an object on stdin), "argv" (`--name value`) or "free" (`FREE_ARGUMENTS`)."""

    name: str
    path: str
    description: str
    parameters: dict[str, Any]
    argument_style: str


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it was found. `main` is the script that is the skill, where it is one; `left_out` maps files to reasons."""

    skill_id: str
    description: str
    folder: SkillFolder
    files: tuple[str, ...]
    manifest: SkillManifest
    scripts: tuple[SkillScript, ...] = ()
    main_script: SkillScript | None = None
    skipped_files: tuple[tuple[str, str], ...] = ()

    def read_instructions(self) -> str:
        """The body of its `SKILL.md`, read now; "" where there is none. Raises: `ToolError`."""
        return _read_document(self.folder)[1] if SKILL_DOCUMENT in self.files else ""


@dataclass(frozen=True, slots=True)
class SkillScan:
    """Skills found, and folders set aside with the reason."""

    skills: tuple[Skill, ...]
    rejected_folders: dict[str, str]


def load_skill(path: Path) -> Skill:
    """Read the skill in a folder. Raises: `BadInput`, saying what is wrong with it."""
    try:
        return _load_skill(path)
    except (BadInput, ToolError) as error:
        raise BadInput(f"{path.name} is no skill that can be used: {error}") from error


def scan_skills(roots: Iterable[Path]) -> SkillScan:
    """Every skill below `roots`, up to four folders deep.

    A bad one, a second of one name, and a folder that cannot be read are set aside.
    """
    found: dict[str, Skill] = {}
    set_aside: dict[str, str] = {}
    for root in roots:
        for folder in _find_skill_folders(root, 0, set_aside):
            try:
                skill = load_skill(folder)
            except BadInput as error:
                set_aside[str(folder)] = str(error)
                continue
            if skill.skill_id in found:
                set_aside[str(folder)] = f"There is a skill named {skill.skill_id!r} already."
                continue
            found[skill.skill_id] = skill
    return SkillScan(tuple(found.values()), set_aside)


def _find_skill_folders(folder: Path, depth: int, rejected_folders: dict[str, str]) -> Iterable[Path]:
    try:
        if not folder.is_dir() or (depth and folder.is_symlink()):
            return
        is_skill = (folder / SKILL_DOCUMENT).exists() or (folder / JSON_MANIFEST).exists()
        below = [] if is_skill or depth == _MAX_FOLDER_DEPTH else sorted(folder.iterdir())
    except OSError as error:
        rejected_folders[str(folder)] = f"It cannot be read: {error.strerror}."
        return
    if is_skill:
        yield folder
    for one in below:
        if not one.name.startswith("."):
            yield from _find_skill_folders(one, depth + 1, rejected_folders)


def _load_skill(path: Path) -> Skill:
    folder = SkillFolder(path)
    files = folder.list_files()
    if SKILL_DOCUMENT not in files.sizes and JSON_MANIFEST not in files.sizes:
        link = next((name for name in (SKILL_DOCUMENT, JSON_MANIFEST) if (path / name).is_symlink()), None)
        raise BadInput(f"its {link} is a link." if link else f"it has no {SKILL_DOCUMENT}.")
    manifest, body = _read_document(folder) if SKILL_DOCUMENT in files.sizes else (SkillManifest(), "")
    if JSON_MANIFEST in files.sizes:
        manifest = _merge_manifests(
            parse_json_manifest(folder.read_text(JSON_MANIFEST, _MAX_DOCUMENT_CHARACTERS)), manifest
        )
    left_out = dict(files.skipped)
    scripts = _collect_scripts(folder, manifest, tuple(files.sizes), left_out)
    main = _get_main_script(folder, manifest, files.sizes)
    described = manifest.description or _find_docstring(folder, main, scripts, path.name) or _get_first_paragraph(body)
    if not described:
        raise BadInput("nothing says what it is for; give it a description.")
    return Skill(
        _to_skill_id(manifest.name or path.name),
        " ".join(described.split()),
        folder,
        tuple(sorted(files.sizes)),
        manifest,
        scripts,
        main,
        tuple(left_out.items()),
    )


def _read_document(folder: SkillFolder) -> tuple[SkillManifest, str]:
    text = folder.read_text(SKILL_DOCUMENT, _MAX_DOCUMENT_CHARACTERS + 1)
    if len(text) > _MAX_DOCUMENT_CHARACTERS:
        raise BadInput(f"its {SKILL_DOCUMENT} is longer than {_MAX_DOCUMENT_CHARACTERS:,} characters.")
    return parse_front_matter(text)


def _merge_manifests(first: SkillManifest, second: SkillManifest) -> SkillManifest:
    """What `first` says, and where it says nothing, what `second` says."""
    said = {name: getattr(first, name) for name in first.model_fields_set}
    return second.model_copy(update=said)


def _get_main_script(folder: SkillFolder, manifest: SkillManifest, files: dict[str, int]) -> SkillScript | None:
    if not manifest.script:
        return None
    declared = ScriptManifest(
        path=manifest.script, name="run", parameters=manifest.parameters, arguments=manifest.arguments
    )
    return _create_script(folder, declared, files)


def _collect_scripts(
    folder: SkillFolder, manifest: SkillManifest, files: tuple[str, ...], skipped_files: dict[str, str]
) -> tuple[SkillScript, ...]:
    declared = {one.path: one for one in manifest.scripts}
    for path in files:
        if path.startswith("scripts/") and path.count("/") == 1 and path not in declared and path != manifest.script:
            if path.endswith(RUNNABLE_SUFFIXES):
                declared[path] = ScriptManifest(path=path)
            elif not path.endswith((".md", ".txt", ".json", ".yaml", ".yml", ".toml")):
                skipped_files[path] = f"only {' and '.join(RUNNABLE_SUFFIXES)} scripts can be run."
    made: dict[str, SkillScript] = {}
    for one in declared.values():
        script = _create_script(folder, one, dict.fromkeys(files, 0))
        made.setdefault(script.name, script)
    return tuple(made.values())


def _create_script(folder: SkillFolder, declared: ScriptManifest, files: dict[str, int]) -> SkillScript:
    if declared.path not in files:
        raise BadInput(f"its script {declared.path} is not there, is a link, or is too large.")
    if not declared.path.endswith(RUNNABLE_SUFFIXES):
        raise BadInput(f"its script {declared.path} cannot be run; {' and '.join(RUNNABLE_SUFFIXES)} scripts can.")
    name = _to_skill_id(declared.name or PurePosixPath(declared.path).stem)
    described = declared.description or _read_script_docstring(folder, declared.path) or f"Run {declared.path}."
    how = "free" if declared.parameters is None else declared.arguments
    return SkillScript(name, declared.path, " ".join(described.split()), declared.parameters or FREE_ARGUMENTS, how)


def _find_docstring(
    folder: SkillFolder, main_script: SkillScript | None, scripts: tuple[SkillScript, ...], name: str
) -> str:
    """The docstring of the skill's own script: the main one, the one of the skill's name, or the only one."""
    if main_script is not None:
        return _read_script_docstring(folder, main_script.path)
    named = [script for script in scripts if script.name in (name, "main", "run")] or list(scripts)
    return _read_script_docstring(folder, named[0].path) if len(named) == 1 else ""


def _read_script_docstring(folder: SkillFolder, path: str) -> str:
    text = folder.read_text(path)
    if path.endswith(".py"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of somebody else's code
                said = ast.get_docstring(ast.parse(text)) or ""
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
        return said.split("\n\n")[0]
    comments = re.match(r"(?:#!.*\n)?((?:#(?!!).*\n)+)", text)
    return re.sub(r"^#+ ?", "", comments[1], flags=re.MULTILINE).strip() if comments else ""


def _get_first_paragraph(body: str) -> str:
    for paragraph in re.split(r"\n\s*\n", body):
        text = paragraph.strip()
        if text and not text.startswith(("#", "```", "---", "|")):
            return text[:500]
    return ""


def _to_skill_id(name: str) -> str:
    made = re.sub(r"[^\w\-]+", "-", name.strip()).strip("-")[:80]
    if not made:
        raise BadInput(f"{name!r} is no name; use letters and digits.")
    return made
