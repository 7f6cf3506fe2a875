"""The commands for stored tools: add, import, enable, export."""

import dataclasses
import os
import shlex
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from opposable.app.spec_loader import SpecLoader
from opposable.app.stored_tools import (
    delete_tool,
    load_stored_specs,
    permissions_from_settings,
    require_stored_tool,
    save_tools,
    set_tool_enabled,
)
from opposable.cli.errors import run_async
from opposable.cli.function_files import read_function_file
from opposable.cli.options import JsonOption, err, out, read_file, read_settings, require_new_file, write_file
from opposable.cli.rendering import render_table, style_text, to_json
from opposable.cli.stored_records import format_minute, read_store, run_with_store
from opposable.domain.errors import BadInput
from opposable.domain.json_text import check_unique_keys, parse_json
from opposable.domain.records import ToolVersion
from opposable.domain.specs import AnyToolSpec, McpServerSpec, Registration, SkillSpec
from opposable.domain.validation_problems import describe_problems
from opposable.safety.secret_references import get_referenced_variables
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import to_safe_name

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer()
"""The commands, which the group `tools` contains."""

_SPEC: TypeAdapter[AnyToolSpec] = TypeAdapter(AnyToolSpec)

ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace a stored tool with the same id")]
ForceOption = Annotated[bool, typer.Option("--force", help="Also store MCP servers that cannot be reached now")]
ToolIdArgument = Annotated[str, typer.Argument(help="Id of a stored tool")]


@cli.command("add")
def add_specs(
    file: Annotated[Path, typer.Argument(help="Python file, or JSON or YAML file with tool specs")],
    replace: ReplaceOption = False,
    force: ForceOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Run the code of a Python file without a question")] = False,
    json: JsonOption = False,
) -> None:
    """Store the tools of a file: Python functions, or specs of functions, HTTP endpoints, MCP servers and skills.

    Each public function of a Python file becomes a tool. The command asks before it runs the file's code, and again after the file has changed.

    Example: opposable tools add my_functions.py
    """
    if file.suffix == ".py":
        functions, other_functions = read_function_file(read_settings(), file, assume_yes=yes)
        _save_and_report(functions, replace, json, skipped_parts=other_functions)
    else:
        specs, invalid_specs = _read_specs(file)
        _save_and_report(specs, replace, json, invalid_specs, force=force)


@cli.command("import-openapi")
def import_openapi(
    source: Annotated[str, typer.Argument(help="OpenAPI 3 document: file or URL, JSON or YAML")],
    prefix: Annotated[str, typer.Option("--prefix", help="Prefix of the tool ids, followed by a dot")] = "",
    server: Annotated[str, typer.Option("--server", help="Base URL (default: that of the document)")] = "",
    only: Annotated[list[str] | None, typer.Option("--only", help="Tag or operation id to import (repeatable)")] = None,
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Store an HTTP tool for each operation of an OpenAPI document.

    Example: opposable tools import-openapi openapi.yaml --prefix shop --only orders
    """
    # lazy: OpenAPI documents need the extra "http"
    from opposable.tools.http.openapi.document import read_document  # lazy: OpenAPI needs the extra "http"
    from opposable.tools.http.openapi.importer import OpenApiImportResult, specs_from_openapi  # lazy: see above

    settings = read_settings()

    async def read_tools() -> OpenApiImportResult:
        async with SpecLoader(ToolLibrary(), permissions_from_settings(settings)) as loader:
            document = await read_document(source, loader.client)
        return specs_from_openapi(document, prefix=prefix, server=server, include=tuple(only or ()))

    imported = run_async(read_tools())
    reasons: dict[str, list[str]] = {}
    for part in imported.skipped_parts:
        reasons.setdefault(part.location, []).append(part.reason)
    skipped_parts = {location: "; ".join(texts) for location, texts in reasons.items()}
    _save_and_report(imported.specs, replace, json, skipped_parts=skipped_parts)


@cli.command("add-mcp")
def add_mcp(
    source: Annotated[str, typer.Argument(help="mcpServers file, server URL, or command line")],
    name: Annotated[str, typer.Option("--name", help="Server id, for a URL or a command line")] = "",
    replace: ReplaceOption = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Store the tools of MCP servers: of an mcpServers file, a URL, or a command line.

    Example: opposable tools add-mcp "python -m mcp_server_time" --name clock
    """
    servers, invalid_servers = _read_mcp_servers(source, name)
    _save_and_report(servers, replace, json, invalid_servers, force=force)


@cli.command("add-skill")
def add_skill(
    folder: Annotated[Path, typer.Argument(help="Folder with a SKILL.md, or with such folders")],
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Store the skills of a folder.

    Example: opposable tools add-skill skills
    """
    from opposable.tools.skills.loader import scan_skills  # lazy: skills need the extra "skills"

    if not folder.is_dir():
        raise BadInput(f"The folder {folder} does not exist. Pass a folder with a SKILL.md.")
    scan = scan_skills([folder.resolve()])
    if not scan.skills and not scan.rejected_folders:
        raise BadInput(f"{folder} has no SKILL.md, and no folder in it has one. Pass the folder of a skill.")
    specs = [SkillSpec(tool_id=skill.skill_id, path=skill.folder.path) for skill in scan.skills]
    skipped_files = {f"{one.skill_id}/{file}": why for one in scan.skills for file, why in one.skipped_files}
    _save_and_report(specs, replace, json, dict(scan.rejected_folders), skipped_parts=skipped_files)


@cli.command("rm")
def remove(name: ToolIdArgument, json: JsonOption = False) -> None:
    """Delete a stored tool, and the bindings of agents to it.

    Example: opposable tools rm clock
    """
    run_async(delete_tool(read_settings(), name))
    print(to_json({"tool_id": name})) if json else out.print(style_text(f"{name} is deleted."))


@cli.command("enable")
def enable(name: ToolIdArgument, json: JsonOption = False) -> None:
    """Enable a stored tool.

    Example: opposable tools enable clock
    """
    _set_enabled(name, json, enabled=True)


@cli.command("disable")
def disable(name: ToolIdArgument, json: JsonOption = False) -> None:
    """Disable a stored tool.

    Example: opposable tools disable clock
    """
    _set_enabled(name, json, enabled=False)


def _set_enabled(name: str, json: bool, *, enabled: bool) -> None:
    run_async(set_tool_enabled(read_settings(), name, enabled=enabled))
    sentence = style_text(f"{name} is {'enabled' if enabled else 'disabled'}.")
    print(to_json({"tool_id": name, "enabled": enabled})) if json else out.print(sentence)


@cli.command("versions")
def list_versions(
    name: ToolIdArgument,
    version: Annotated[int | None, typer.Argument(help="Version to compare with the newest one")] = None,
    json: JsonOption = False,
) -> None:
    """List the versions of a stored tool, or compare one with the newest.

    Example: opposable tools versions stock
    """
    versions = _load_versions(name)
    if version is not None:
        old, new = (_to_spec_json(v.spec) for v in (_find_version(versions, name, version), versions[0]))
        labels = (f"version {version}", f"version {versions[0].version}")
        diff = "\n".join(unified_diff(old.splitlines(), new.splitlines(), *labels, lineterm=""))
        if json:
            print(to_json({"version": version, "newest": versions[0].version, "diff": diff}))
        else:
            out.print(style_text(diff or f"Version {version} equals version {versions[0].version}."))
    elif json:
        print(
            to_json({"versions": [dataclasses.asdict(v) | {"spec": v.spec.model_dump(mode="json")} for v in versions]})
        )
    else:
        rows = [(str(v.version), format_minute(v.created_at), v.saved_by, v.spec.description) for v in versions]
        out.print(render_table(("version", "saved", "by", "description"), rows, limit=len(rows)))


@cli.command("restore")
def restore(
    name: ToolIdArgument,
    version: Annotated[int, typer.Argument(help="Version to restore")],
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Save an earlier version of a stored tool as its newest one.

    Example: opposable tools restore stock 1
    """
    spec = _find_version(_load_versions(name), name, version).spec
    _save_and_report([spec], True, json, force=force)


def _load_versions(tool_id: str) -> tuple[ToolVersion, ...]:
    """Return the versions of a stored tool, newest first, each enabled if the tool is."""

    async def load(store: "Store") -> tuple[ToolVersion, ...]:
        stored = await require_stored_tool(store, tool_id)
        versions = await store.tools.list_versions(tool_id)
        return tuple(
            dataclasses.replace(v, spec=v.spec.model_copy(update={"enabled": stored.enabled})) for v in versions
        )

    return run_with_store(load)


def _find_version(versions: Sequence[ToolVersion], tool_id: str, number: int) -> ToolVersion:
    for version in versions:
        if version.version == number:
            return version
    raise BadInput(f"The tool {tool_id!r} has no version {number}. See: opposable tools versions {tool_id}")


def _to_spec_json(spec: AnyToolSpec) -> str:
    return to_json(spec.model_dump(mode="json", exclude_defaults=True, exclude={"enabled"}))


@cli.command("export")
def export_specs(
    file: Annotated[Path | None, typer.Argument(help="New output file (default, and -: standard output)")] = None,
) -> None:
    """Write the specs of all stored tools as JSON, which contains no secrets.

    Example: opposable tools export tools.json
    """
    if file == Path("-"):
        file = None
    if file is not None:
        require_new_file(file)
    stored: tuple[AnyToolSpec, ...] = read_store(load_stored_specs, ())
    specs = [spec.model_dump(mode="json", exclude_defaults=True) | {"tool_type": spec.tool_type} for spec in stored]
    text = to_json(specs)
    if file is None:
        print(text)
        return
    write_file(file, text + "\n")
    err.print(style_text(f"{len(specs)} tools are written to {file}."))


@cli.command("import")
def import_specs(
    file: Annotated[Path, typer.Argument(help="File written by `tools export`")],
    replace: ReplaceOption = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Store the tools of an export.

    Example: opposable tools import tools.json --replace
    """
    specs, invalid_specs = _read_specs(file)
    _save_and_report(specs, replace, json, invalid_specs, force=force)


def _save_and_report(
    specs: Sequence[AnyToolSpec],
    replace: bool,
    json: bool,
    left_out: dict[str, str] | None = None,
    *,
    skipped_parts: dict[str, str] | None = None,
    force: bool = False,
) -> None:
    """Store the tools and report the result; the exit code is 1 if any spec or server is not stored or unusable.

    `left_out` are invalid specs. `skipped_parts` are operations, functions and files that cannot be tools; they are no error.
    """
    is_complete, left_out = not left_out, {**(left_out or {}), **(skipped_parts or {})}
    if not specs and not left_out:
        raise BadInput("There is no tool to store: the file or document defines none.")
    registrations = run_async(save_tools(read_settings(), specs, replace=replace, force=force)) if specs else []
    secrets = get_referenced_variables(*specs)
    if json:
        forms = [registration.model_dump(mode="json") for registration in registrations]
        print(to_json({"tools": forms, "left_out": left_out, "secrets": secrets}))
    else:
        _print_registrations(registrations, left_out, secrets)
    if not (is_complete and registrations and all(registration.has_tools for registration in registrations)):
        raise typer.Exit(1)


def _print_registrations(registrations: Sequence[Registration], left_out: dict[str, str], secrets: list[str]) -> None:
    for registration in registrations:
        for name in registration.accepted:
            out.print(style_text(("✓ ", "green"), _get_display_id(registration.tool_id, name)))
        for name, reason in registration.rejected.items():
            err.print(style_text(("✗ ", "red"), f"{name}: {reason.removeprefix(f'{name}: ')}"))
    for where, reason in left_out.items():
        err.print(style_text(("– ", "yellow"), f"{where}: {reason}"))
    if secrets:
        err.print(style_text(f"The tools need these environment variables: {', '.join(secrets)}."))


def _get_display_id(tool_id: str, name: str) -> str:
    """Return the id of a tool's action by its name for models, or a hashed name itself, which has no action."""
    safe_id = to_safe_name(tool_id)
    if name == safe_id:
        return tool_id
    return f"{tool_id}.{name[len(safe_id) + 1 :]}" if name.startswith(f"{safe_id}_") else name


def _read_mcp_servers(source: str, name: str) -> tuple[list[McpServerSpec], dict[str, str]]:
    """Return the servers, and the reason for each invalid server of a file."""
    from opposable.tools.mcp.config import read_servers  # lazy: MCP needs the extra "mcp"

    path = Path(source)
    # With --name it may be a command line. Functions of `os`, since methods of `Path` raise OSError for a long one.
    if not name and os.path.isdir(source):  # noqa: PTH112
        raise BadInput(f"{path} is a folder. Pass an mcpServers file, a server URL, or a command line with --name.")
    if os.path.isfile(source) or (not name and (path.suffix == ".json" or os.path.exists(source))):  # noqa: PTH110, PTH113
        skipped: dict[str, str] = {}
        try:
            raw = read_file(path)
            check_unique_keys(raw, path)
            return read_servers(raw.decode("utf-8-sig"), skipped=skipped), skipped
        except UnicodeDecodeError as error:
            raise BadInput(f"{path} is not UTF-8 text. Save it as UTF-8.") from error
    if not name:
        raise BadInput("The server has no id. Pass one, such as --name clock.")
    entry: dict[str, Any] = {"url": source}
    if "://" not in source:
        try:
            words = shlex.split(source)
        except ValueError as error:
            raise BadInput(
                f"The command line {source!r} is invalid: {str(error).lower()}. Close every quotation mark."
            ) from error
        entry = {"command": words[0], "args": words[1:]} if words else {}
    return read_servers({"mcpServers": {name: entry}}), {}


def _read_specs(file: Path) -> tuple[list[AnyToolSpec], dict[str, str]]:
    """Return the specs of a file, and the reason for each invalid one.

    Raises:
        BadInput: The file has no valid spec.
    """
    raw = read_file(file)
    check_unique_keys(raw, file)
    try:
        value = parse_json(raw)
    except ValueError:
        from opposable.tools.http.openapi.document import parse_yaml  # lazy: YAML needs the extra "http"

        value = parse_yaml(raw, str(file))
    if value in ([], None):
        raise BadInput(f"{file} contains no tool spec: it is empty.")
    specs: list[AnyToolSpec] = []
    invalid_specs: dict[str, str] = {}
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        name = f"spec {number}" + (f" ({item['tool_id']})" if isinstance(item, dict) and "tool_id" in item else "")
        try:
            spec = _SPEC.validate_python(item)
        except ValidationError as error:
            invalid_specs[name] = describe_problems(error, AnyToolSpec, limit=1)
            continue
        if any(other.tool_id == spec.tool_id for other in specs):
            invalid_specs[name] = "an earlier spec of the file has the same id"
        else:
            specs.append(spec)
    if not specs:
        name, reason = next(iter(invalid_specs.items()))
        raise BadInput(f"{file} contains no valid tool spec. {name}: {reason}.")
    return specs, invalid_specs
