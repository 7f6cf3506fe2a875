"""The routes that take in what others wrote: an OpenAPI document, MCP servers, a folder with skills."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from pydantic import BaseModel, Field

from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.specs import AnyToolSpec, SkillSpec
from opposable.service.service import Service
from opposable.web.api.dependencies import PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.spec_authorization import authorize_spec, get_referenced_variables
from opposable.web.api.tools import check_loadable, save_tool
from opposable.web.errors import ApiError, error_responses, forbidden_error
from opposable.web.principal import Principal

router = APIRouter(prefix="/api/tools/import", tags=["tools"])
REQUIRE_WRITE, REQUIRE_ADMIN = [Depends(RequireScope("tools:write"))], [Depends(RequireScope("admin"))]
MAX_TOOLS_PER_IMPORT = 1000
"""Tools of one import."""

OPENAPI_EXAMPLE = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com"}],
    "paths": {"/pets/{id}": {"get": {"operationId": "pet", "responses": {"200": {"description": "A pet."}}}}},
}


class ImportOptions(BaseModel):
    """What every import may be told."""

    model_config = {"extra": "forbid"}

    dry_run: bool = Field(default=False, description="Only say what would come of it.")
    replace: bool = Field(default=False, description="Put tools in the place of those that have their ids.")


class OpenApiImportRequest(ImportOptions):
    """An OpenAPI 3 document: itself, its text, or the URL where it is."""

    document: dict[str, Any] | None = Field(default=None, examples=[OPENAPI_EXAMPLE])
    text: str = Field(default="", description="The document as JSON or YAML text.", max_length=20_000_000)
    url: str = Field(default="", description="Where the document is.", max_length=2000)
    prefix: str = Field(default="", description="Goes before each tool's id and each secret's name.", max_length=40)
    server: str = Field(
        default="", description="Called in place of the servers that the document names.", max_length=2000
    )
    only: list[str] = Field(
        default=[], description="Only the operations with these tags or operation ids.", max_length=MAX_TOOLS_PER_IMPORT
    )


class McpImportRequest(ImportOptions):
    """MCP servers as every client's configuration has them."""

    config: dict[str, Any] = Field(examples=[{"mcpServers": {"notes": {"url": "https://notes.example.com/mcp"}}}])


class SkillImportRequest(ImportOptions):
    """A folder with a skill in it, or with folders of skills."""

    path: str = Field(description="A folder inside of one of the owner's.", max_length=2000, examples=["skills/report"])


class SkippedItem(BaseModel):
    """What could not be taken, and why."""

    where: str
    why: str


class ImportResponse(BaseModel):
    """What came of an import."""

    accepted: list[AnyToolSpec]
    left_out: list[SkippedItem]
    wanted_variables: list[str] = Field(description="Environment variables that the tools need.")
    dry_run: bool


@router.post(
    "/openapi", dependencies=REQUIRE_WRITE, responses=error_responses(), summary="Make tools of an OpenAPI document"
)
async def import_openapi(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[OpenApiImportRequest, Body(examples=[{"document": OPENAPI_EXAMPLE}])],
) -> ImportResponse:
    """A tool for each operation that can be called; what cannot is told with the reason."""
    from opposable.tools.http.openapi.document import is_small, parse_document, read_document
    from opposable.tools.http.openapi.importer import specs_from_openapi

    if sum((body.document is not None, bool(body.text), bool(body.url))) != 1:
        raise BadInput("Give one of document, text and url.")
    if body.url and not body.url.lower().startswith(("https://", "http://")):
        raise BadInput("The url begins with https:// or http://.")
    source = parse_document(body.text.encode("utf-8", "replace"), "The text") if body.text else body.document
    if source is not None and not (isinstance(source, dict) and is_small(source, 2_000_000)):
        raise BadInput("This is no OpenAPI document, or it is too large.")
    document = await read_document(body.url if source is None else source, service.spec_loader.client)
    made = await asyncio.to_thread(
        specs_from_openapi, document, prefix=body.prefix, server=body.server, include=body.only
    )
    left_out = [SkippedItem(where=one.location, why=one.reason) for one in made.skipped_parts]
    return await _import_specs(service, principal, made.specs, left_out, body)


@router.post("/mcp", dependencies=REQUIRE_ADMIN, responses=error_responses(), summary="Add MCP servers")
async def import_mcp(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[
        McpImportRequest,
        Body(examples=[{"config": {"mcpServers": {"notes": {"url": "https://notes.example.com/mcp"}}}}]),
    ],
) -> ImportResponse:
    """Each server of the configuration; programs only where the owner lets them be started."""
    from opposable.tools.mcp.config import read_servers

    return await _import_specs(service, principal, read_servers(body.config), [], body)


@router.post("/skill", dependencies=REQUIRE_WRITE, responses=error_responses(), summary="Take in skills of a folder")
async def import_skill(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[SkillImportRequest, Body(examples=[{"path": "skills"}])],
) -> ImportResponse:
    """The skill in a folder, or all skills below it; only inside of the owner's folders."""
    folder = _resolve_folder(body.path, service)
    specs, left_out = await asyncio.to_thread(_scan_skills, folder)
    return await _import_specs(service, principal, specs, left_out, body)


async def _import_specs(
    service: Service, principal: Principal, specs: Any, left_out: list[SkippedItem], options: ImportOptions
) -> ImportResponse:
    """Keep what the owner allows and what a tool can be made of; the rest is left out with the reason."""
    accepted: list[AnyToolSpec] = []
    wanted: set[str] = set()
    for number, spec in enumerate(specs):
        wanted.update(get_referenced_variables(spec))
        try:
            if number >= MAX_TOOLS_PER_IMPORT:
                raise BadInput(
                    f"More than {MAX_TOOLS_PER_IMPORT:,} tools are not taken at once; choose some with `only`."
                )
            await _import_spec(service, principal, spec, options)
        except (ApiError, OpposableError) as error:
            left_out.append(SkippedItem(where=spec.tool_id, why=str(error)))
            continue
        accepted.append(spec)
    return ImportResponse(
        accepted=accepted, left_out=left_out, wanted_variables=sorted(wanted), dry_run=options.dry_run
    )


async def _import_spec(service: Service, principal: Principal, spec: AnyToolSpec, options: ImportOptions) -> None:
    await authorize_spec(spec, service, principal)
    if not options.replace and await service.store.tools.get(spec.tool_id) is not None:
        raise BadInput(f"There is a tool {spec.tool_id!r} already; give `replace` to change it, or a `prefix`.")
    if options.dry_run:
        await check_loadable(service, spec)
    else:
        await save_tool(service, spec, service.store.tools.save)


def _resolve_folder(path: str, service: Service) -> Path:
    """The folder that is meant, absolute or inside one of the owner's. Raises: `ApiError` 403, `BadInput`."""
    if "\0" in path:
        raise BadInput("This is no path of a folder.")
    for root in service.settings.skills:
        folder = (root / path).resolve()
        if folder.is_relative_to(root.resolve()) and folder.is_dir():
            return folder
    if not service.settings.skills:
        raise forbidden_error(
            "Skills are taken from the owner's folders only; the owner can list them in OPPOSABLE_SKILLS."
        )
    raise BadInput(f"There is no folder {path!r} inside of the owner's folders.")


def _scan_skills(folder: Path) -> tuple[list[SkillSpec], list[SkippedItem]]:
    from opposable.tools.skills.loader import scan_skills

    scan = scan_skills([folder])
    specs = [
        SkillSpec(
            tool_id=skill.skill_id,
            description=skill.description,
            version=skill.manifest.version,
            path=skill.folder.path,
        )
        for skill in scan.skills
    ]
    aside = [SkippedItem(where=Path(where).name, why=why) for where, why in scan.rejected_folders.items()]
    aside += [SkippedItem(where=f"{s.skill_id}/{file}", why=why) for s in scan.skills for file, why in s.skipped_files]
    if not specs and not aside:
        raise BadInput("There is no skill in this folder: it has no SKILL.md.")
    return specs, aside
