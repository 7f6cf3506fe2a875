"""The commands that keep tools: added, imported, switched, given to others."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import TypeAdapter, ValidationError

from opposable.app import stored_tools as owned
from opposable.app.spec_loader import SpecLoader
from opposable.cli.options import JsonOption, err, out, read_settings
from opposable.cli.rendering import style_text, to_json
from opposable.domain.errors import BadInput
from opposable.domain.specs import AnyToolSpec, McpServerSpec, Registration, SkillSpec

_SPEC_LIST: TypeAdapter[list[AnyToolSpec]] = TypeAdapter(list[AnyToolSpec])

ReplaceOption = Annotated[bool, typer.Option("--replace", help="Put it in the place of a kept tool of the same id.")]
ToolIdArgument = Annotated[str, typer.Argument(help="The id of a kept tool.")]


def add_specs(
    file: Annotated[Path, typer.Argument(help="A JSON or YAML file with a tool's spec, or a list of them.")],
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Keep the tools that a file describes: functions, HTTP endpoints, MCP servers, skills.

    Example: opposable tools add tools.yaml
    """
    _save_and_report(_read_specs(file), replace, json)


def import_openapi(
    source: Annotated[str, typer.Argument(help="An OpenAPI 3 document: a file or a URL, JSON or YAML.")],
    prefix: Annotated[str, typer.Option("--prefix", help="Put this and a dot before each id.")] = "",
    server: Annotated[str, typer.Option("--server", help="The base URL, in place of the document's own.")] = "",
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A tag or operation id to take; may be given again.")
    ] = None,
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Make an HTTP tool of each operation of an OpenAPI document, and keep them.

    Example: opposable tools import-openapi openapi.yaml --prefix shop --only orders
    """
    from opposable.tools.http.openapi.document import read_document
    from opposable.tools.http.openapi.importer import OpenApiImportResult, specs_from_openapi
    from opposable.tools.library import ToolLibrary

    settings = read_settings()

    async def read() -> OpenApiImportResult:
        async with SpecLoader(ToolLibrary(), owned.permissions_from_settings(settings)) as box:
            document = await read_document(source, box.client)
        return specs_from_openapi(document, prefix=prefix, server=server, include=tuple(only or ()))

    imported = asyncio.run(read())
    left_out = {part.location: part.reason for part in imported.skipped_parts}
    _save_and_report(imported.specs, replace, json, left_out)


def add_mcp(
    source: Annotated[
        str, typer.Argument(help="A file with mcpServers, the URL of a server, or a program with its arguments.")
    ],
    name: Annotated[str, typer.Option("--name", help="The server's id, for a URL or a program.")] = "",
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Keep the tools of MCP servers: of the usual mcpServers file, of a URL, or of a program.

    Example: opposable tools add-mcp "python -m mcp_server_time" --name clock
    """
    _save_and_report(_read_mcp_servers(source, name), replace, json)


def add_skill(
    folder: Annotated[Path, typer.Argument(help="A folder with a SKILL.md, or one that holds such folders.")],
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Keep the skills of a folder.

    Example: opposable tools add-skill skills
    """
    from opposable.tools.skills.loader import scan_skills

    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder}.")
    scan = scan_skills([folder.resolve()])
    if not scan.skills and not scan.rejected_folders:
        raise BadInput(f"There is no SKILL.md in {folder} or in a folder of it.")
    specs = [SkillSpec(tool_id=skill.skill_id, path=skill.folder.path) for skill in scan.skills]
    _save_and_report(specs, replace, json, {str(path): why for path, why in scan.rejected_folders.items()})


def remove(name: ToolIdArgument) -> None:
    """Forget a kept tool, and agents' bindings to it.

    Example: opposable tools rm clock
    """
    asyncio.run(owned.delete_tool(read_settings(), name))
    out.print(style_text(f"{name} is forgotten."))


def enable(name: ToolIdArgument) -> None:
    """Switch a kept tool on.

    Example: opposable tools enable clock
    """
    asyncio.run(owned.set_tool_enabled(read_settings(), name, enabled=True))
    out.print(style_text(f"{name} is on."))


def disable(name: ToolIdArgument) -> None:
    """Switch a kept tool off.

    Example: opposable tools disable clock
    """
    asyncio.run(owned.set_tool_enabled(read_settings(), name, enabled=False))
    out.print(style_text(f"{name} is off."))


def export_specs(
    file: Annotated[Path | None, typer.Argument(help="Where to write; standard output without it.")] = None,
) -> None:
    """Write the specs of all kept tools as JSON. Secrets are references, so that it can be shared.

    Example: opposable tools export tools.json
    """

    async def work() -> tuple[AnyToolSpec, ...]:
        async with owned.open_default_store(read_settings()) as store:
            return await owned.load_stored_specs(store)

    specs = [
        spec.model_dump(mode="json", exclude_defaults=True) | {"tool_type": spec.tool_type}
        for spec in asyncio.run(work())
    ]
    text = to_json(specs)
    if file is None:
        print(text)
        return
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}.") from error
    err.print(style_text(f"{len(specs)} tools are in {file}."))


def register_commands(cli: typer.Typer) -> None:
    """Put the commands of this room into `cli`."""
    for name, command in (
        ("add", add_specs),
        ("import-openapi", import_openapi),
        ("add-mcp", add_mcp),
        ("add-skill", add_skill),
        ("rm", remove),
        ("enable", enable),
        ("disable", disable),
        ("export", export_specs),
        ("import", import_specs),
    ):
        cli.command(name)(command)


def import_specs(
    file: Annotated[Path, typer.Argument(help="What `tools export` wrote.")],
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Keep the tools of an export.

    Example: opposable tools import tools.json --replace
    """
    _save_and_report(_read_specs(file), replace, json)


def _save_and_report(
    specs: Sequence[AnyToolSpec], replace: bool, json: bool, left_out: dict[str, str] | None = None
) -> None:
    """Keep the tools and tell what came of it; exit code 1 when none can be used."""
    came = asyncio.run(owned.save_tools(read_settings(), specs, replace=replace)) if specs else []
    left_out = left_out or {}
    if json:
        told = [one.model_dump(mode="json") for one in came]
        print(to_json({"tools": told, "left_out": left_out, "secrets": _find_secrets(specs)}))
    else:
        _print_registrations(came, left_out, _find_secrets(specs))
    if not any(one.has_tools for one in came):
        raise typer.Exit(1)


def _print_registrations(registrations: Sequence[Registration], left_out: dict[str, str], secrets: list[str]) -> None:
    for one in registrations:
        for name in one.accepted:
            out.print(style_text(("✓ ", "green"), name))
        for name, why in one.set_aside.items():
            err.print(style_text(("✗ ", "red"), f"{name}: {why}"), soft_wrap=True)
    for where, why in left_out.items():
        err.print(style_text(("– ", "yellow"), f"{where}: {why}"), soft_wrap=True)
    if secrets:
        err.print(style_text(f"They need these environment variables: {', '.join(secrets)}."), soft_wrap=True)


def _find_secrets(specs: Sequence[AnyToolSpec]) -> list[str]:
    """The environment variables that the specs refer to."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, str):
            found.extend(word.removeprefix("env:") for word in value.split() if word.startswith("env:"))
        elif isinstance(value, dict):
            for inner in value.values():
                look(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                look(inner)

    for spec in specs:
        look(spec.model_dump(mode="json", include={"endpoint", "env", "headers"}))
    return sorted(set(found))


def _read_mcp_servers(source: str, name: str) -> list[McpServerSpec]:
    from opposable.tools.mcp.config import read_servers

    path = Path(source)
    if path.suffix == ".json" or path.is_file():
        return read_servers(_read_bytes(path))
    if not name:
        raise BadInput("Give the server an id: --name clock.")
    entry: dict[str, Any] = {"url": source}
    if "://" not in source:
        import shlex

        try:
            words = shlex.split(source)
        except ValueError as error:
            raise BadInput(f"The program cannot be read: {str(error).lower()}; close every quotation mark.") from error
        entry = {"command": words[0], "args": words[1:]} if words else {}
    return read_servers({"mcpServers": {name: entry}})


def _read_specs(file: Path) -> list[AnyToolSpec]:
    raw = _read_bytes(file)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _parse_yaml(raw, file)
    if value in ([], None):
        raise BadInput(f"{file} describes no tool: it is empty.")
    try:
        return _SPEC_LIST.validate_python(value if isinstance(value, list) else [value])
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise BadInput(f"{file} describes no tool: {where}: {first['msg']}.") from error


def _parse_yaml(raw: bytes, file: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(raw)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} is neither JSON nor YAML: {str(error).splitlines()[0]}.") from error


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error
