"""Finds skills in folders and loads their manifests. Instructions are read when they are used."""

import ast
import re
import warnings
from collections.abc import Collection, Iterable
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
"""The parameters of a script that declares none."""


MAX_DESCRIPTION_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class SkillScript:
    """A script of a skill.

    `argument_style` is "json" (an object on standard input), "argv" (`--name=value`) or "free" (`FREE_ARGUMENTS`).
    """

    name: str
    path: str
    description: str
    parameters: dict[str, Any]
    argument_style: str


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it was loaded.

    `main_script` is set if the skill is a single script. `skipped_files` are pairs of a path and a reason.
    """

    skill_id: str
    description: str
    folder: SkillFolder
    files: tuple[str, ...]
    manifest: SkillManifest
    scripts: tuple[SkillScript, ...] = ()
    main_script: SkillScript | None = None
    skipped_files: tuple[tuple[str, str], ...] = ()

    def read_instructions(self) -> str:
        """Read the body of the skill's `SKILL.md`; "" if it has none. Raises: `ToolError`."""
        return _read_document(self.folder)[1] if SKILL_DOCUMENT in self.files else ""


@dataclass(frozen=True, slots=True)
class SkillScan:
    """The skills that were found, and the folders that were rejected, with the reason."""

    skills: tuple[Skill, ...]
    rejected_folders: dict[str, str]


def load_skill(path: Path) -> Skill:
    """Load the skill in a folder. Raises: `BadInput`, with the reason why it cannot be used."""
    try:
        return _load_skill(path)
    except (BadInput, ToolError) as error:
        raise BadInput(f"{path.name} is not a usable skill: {error}") from error


def scan_skills(roots: Iterable[Path]) -> SkillScan:
    """Load every skill below `roots`, up to four folders deep.

    Invalid skills, skills with a name that is taken, and unreadable folders are rejected.
    """
    skills: dict[str, Skill] = {}
    rejected_folders: dict[str, str] = {}
    for root in roots:
        for folder in _find_skill_folders(root, 0, rejected_folders):
            try:
                skill = load_skill(folder)
            except BadInput as error:
                rejected_folders[str(folder)] = str(error)
                continue
            if skill.skill_id in skills:
                rejected_folders[str(folder)] = f"There is already a skill named {skill.skill_id!r}."
                continue
            skills[skill.skill_id] = skill
    return SkillScan(tuple(skills.values()), rejected_folders)


def _find_skill_folders(folder: Path, depth: int, rejected_folders: dict[str, str]) -> Iterable[Path]:
    try:
        if not folder.is_dir():
            return
        is_skill = (folder / SKILL_DOCUMENT).exists() or (folder / JSON_MANIFEST).exists()
        is_link = depth > 0 and folder.is_symlink()
        children = [] if is_skill or is_link or depth == _MAX_FOLDER_DEPTH else sorted(folder.iterdir())
    except OSError as error:
        rejected_folders[str(folder)] = f"It cannot be read: {error.strerror}."
        return
    if is_skill:
        yield folder  # a link is rejected where it is loaded
    for child in children:
        if not child.name.startswith("."):
            yield from _find_skill_folders(child, depth + 1, rejected_folders)


def _load_skill(path: Path) -> Skill:
    folder = SkillFolder(path)
    files = folder.list_files()
    if SKILL_DOCUMENT not in files.sizes and JSON_MANIFEST not in files.sizes:
        link = next((name for name in (SKILL_DOCUMENT, JSON_MANIFEST) if (path / name).is_symlink()), None)
        raise BadInput(f"its {link} is a link." if link else f"it has no {SKILL_DOCUMENT}.")
    manifest, body = _read_document(folder) if SKILL_DOCUMENT in files.sizes else (SkillManifest(), "")
    if JSON_MANIFEST in files.sizes:
        declared = parse_json_manifest(folder.read_text(JSON_MANIFEST))
        manifest = manifest.model_copy(update={name: getattr(declared, name) for name in declared.model_fields_set})
    skipped_files = dict(files.skipped)
    scripts = _collect_scripts(folder, manifest, tuple(files.sizes), skipped_files)
    main_script = _get_main_script(folder, manifest, files.sizes)
    description = (
        manifest.description or _find_docstring(folder, main_script, scripts, path.name) or _get_first_paragraph(body)
    )
    if not description:
        raise BadInput("it has no description. Add one that says what the skill is for.")
    return Skill(
        _to_skill_id(manifest.name or path.name),
        " ".join(description.split()),
        folder,
        tuple(sorted(files.sizes)),
        manifest,
        scripts,
        main_script,
        tuple(skipped_files.items()),
    )


def _read_document(folder: SkillFolder) -> tuple[SkillManifest, str]:
    text = folder.read_text(SKILL_DOCUMENT)
    if len(text) > _MAX_DOCUMENT_CHARACTERS:
        raise BadInput(f"its {SKILL_DOCUMENT} is longer than {_MAX_DOCUMENT_CHARACTERS:,} characters.")
    return parse_front_matter(text)


def _get_main_script(folder: SkillFolder, manifest: SkillManifest, files: Collection[str]) -> SkillScript | None:
    if not manifest.script:
        return None
    declared = ScriptManifest(
        path=manifest.script, name="run", parameters=manifest.parameters, arguments=manifest.arguments
    )
    return _create_script(folder, declared, files)


def _collect_scripts(
    folder: SkillFolder, manifest: SkillManifest, files: tuple[str, ...], skipped_files: dict[str, str]
) -> tuple[SkillScript, ...]:
    """Return the declared scripts and those in `scripts/`; other programs are added to `skipped_files`."""
    declared = {script.path: script for script in manifest.scripts}
    for path in files:
        if path.startswith("scripts/") and path.count("/") == 1 and path not in declared and path != manifest.script:
            if path.endswith(RUNNABLE_SUFFIXES):
                declared[path] = ScriptManifest(path=path)
            elif not path.endswith((".md", ".txt", ".json", ".yaml", ".yml", ".toml")):
                skipped_files[path] = f"only {' and '.join(RUNNABLE_SUFFIXES)} scripts can be run."
    scripts: dict[str, SkillScript] = {}
    for declaration in declared.values():
        script = _create_script(folder, declaration, files)
        if scripts.setdefault(script.name, script) is not script:
            skipped_files[script.path] = f"{scripts[script.name].path} has the same name. Rename one of them."
    return tuple(scripts.values())


def _create_script(folder: SkillFolder, declared: ScriptManifest, files: Collection[str]) -> SkillScript:
    if declared.path not in files:
        raise BadInput(f"its script {declared.path} does not exist, is a link, or is too large.")
    if not declared.path.endswith(RUNNABLE_SUFFIXES):
        raise BadInput(f"its script {declared.path} cannot be run. Use {' and '.join(RUNNABLE_SUFFIXES)} scripts.")
    name = _to_skill_id(declared.name or PurePosixPath(declared.path).stem)
    description = declared.description or _read_script_docstring(folder, declared.path) or f"Run {declared.path}."
    argument_style = "free" if declared.parameters is None else declared.arguments
    parameters = declared.parameters or FREE_ARGUMENTS
    return SkillScript(name, declared.path, " ".join(description.split()), parameters, argument_style)


def _find_docstring(
    folder: SkillFolder, main_script: SkillScript | None, scripts: tuple[SkillScript, ...], name: str
) -> str:
    """Return the docstring of the main script, of the script with the skill's name, or of the only script."""
    if main_script is not None:
        return _read_script_docstring(folder, main_script.path)
    candidates = [script for script in scripts if script.name in (name, "main", "run")] or list(scripts)
    return _read_script_docstring(folder, candidates[0].path) if len(candidates) == 1 else ""


def _read_script_docstring(folder: SkillFolder, path: str) -> str:
    text = folder.read_text(path)
    if path.endswith(".py"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the code belongs to the skill's author
                docstring = ast.get_docstring(ast.parse(text)) or ""
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
        return docstring.split("\n\n")[0]
    comments = re.match(r"(?:#!.*\n)?((?:#(?!!).*\n)+)", text)
    return re.sub(r"^#+ ?", "", comments[1], flags=re.MULTILINE).strip() if comments else ""


def _get_first_paragraph(body: str) -> str:
    for paragraph in re.split(r"\n\s*\n", body):
        text = paragraph.strip()
        if text and not text.startswith(("#", "```", "---", "|")):
            return text[:MAX_DESCRIPTION_CHARACTERS]
    return ""


def _to_skill_id(name: str) -> str:
    skill_id = re.sub(r"[^\w\-]+", "-", name.strip()).strip("-")[:80]
    if not skill_id:
        raise BadInput(f"{name!r} is not a valid name. Use letters and digits.")
    return skill_id
