"""The routes that import OpenAPI documents, MCP configurations and skills."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends
from pydantic import BaseModel, Field

from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.specs import AnyToolSpec, SkillSpec
from opposable.safety.secret_references import get_referenced_variables
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.spec_authorization import authorize_spec, without_refused_auth
from opposable.web.api.tools import check_loadable
from opposable.web.errors import ApiError, error_responses, forbidden_error
from opposable.web.principal import Principal

router = ApiRouter(prefix="/api/tools/import", tags=["tools"])
REQUIRE_WRITE, REQUIRE_ADMIN = [Depends(RequireScope("tools:write"))], [Depends(RequireScope("admin"))]
MAX_TOOLS_PER_IMPORT = 1000


MCP_EXAMPLE = {"mcpServers": {"notes": {"url": "https://notes.example.com/mcp"}}}
OPENAPI_EXAMPLE = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com"}],
    "paths": {"/pets/{id}": {"get": {"operationId": "pet", "responses": {"200": {"description": "A pet."}}}}},
}


class ImportOptions(BaseModel):
    """Options of every import."""

    model_config = {"extra": "forbid"}

    dry_run: bool = Field(default=False, description="Whether to report the outcome without storing anything.")
    replace: bool = Field(default=False, description="Whether to replace existing tools with the same ids.")


class OpenApiImportRequest(ImportOptions):
    """An OpenAPI 3 document, as an object, a text or a URL. Send exactly one of them."""

    document: dict[str, Any] | None = Field(default=None, examples=[OPENAPI_EXAMPLE])
    text: str = Field(default="", description="The document as JSON or YAML text.", max_length=20_000_000)
    url: str = Field(default="", description="The URL of the document.", max_length=2000)
    prefix: str = Field(default="", description="The prefix of tool ids and secret names.", max_length=40)
    server: str = Field(
        default="", description="The base URL to call instead of the servers in the document.", max_length=2000
    )
    only: list[str] = Field(
        default=[],
        description="Import only operations with these tags or operation ids.",
        max_length=MAX_TOOLS_PER_IMPORT,
    )


class McpImportRequest(ImportOptions):
    """MCP servers in the common configuration format of MCP clients."""

    config: dict[str, Any] = Field(examples=[MCP_EXAMPLE])


class SkillImportRequest(ImportOptions):
    """A folder that contains a skill or folders with skills."""

    path: str = Field(
        description="A path inside a folder that OPPOSABLE_SKILLS lists.", max_length=2000, examples=["skills/report"]
    )


class SkippedItem(BaseModel):
    """A part that was not imported, with the reason."""

    where: str
    why: str


class ImportResponse(BaseModel):
    """The outcome of an import."""

    accepted: list[AnyToolSpec]
    left_out: list[SkippedItem]
    wanted_variables: list[str] = Field(description="The environment variables that the tools refer to.")
    dry_run: bool


@router.post("/openapi", dependencies=REQUIRE_WRITE, responses=error_responses(), summary="Import an OpenAPI document")
async def import_openapi(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[OpenApiImportRequest, Body(examples=[{"document": OPENAPI_EXAMPLE}])],
) -> ImportResponse:
    """Create a tool for each operation.

    Operations that cannot be called are reported with the reason.
    """
    from opposable.tools.http.openapi.document import is_small, parse_document, read_document  # lazy: as below
    from opposable.tools.http.openapi.importer import specs_from_openapi  # lazy: OpenAPI needs the extra "http"

    if sum((body.document is not None, bool(body.text), bool(body.url))) != 1:
        raise BadInput("The request must have exactly one of document, text and url.")
    if body.url and not body.url.lower().startswith(("https://", "http://")):
        raise BadInput(f"The url {body.url!r} must start with https:// or http://.")
    source: Any = body.document
    if body.text:
        source = await asyncio.to_thread(parse_document, body.text.encode("utf-8", "replace"), "The text")
    if source is not None and not (isinstance(source, dict) and is_small(source, 2_000_000)):
        raise BadInput("The document is not an OpenAPI document, or it is too large.")
    document = await read_document(body.url if source is None else source, service.spec_loader.client)
    imported = await asyncio.to_thread(
        specs_from_openapi, document, prefix=body.prefix, server=body.server, include=body.only
    )
    left_out = [SkippedItem(where=part.location, why=part.reason) for part in imported.skipped_parts]
    return await _import_specs(service, principal, imported.specs, left_out, body)


@router.post("/mcp", dependencies=REQUIRE_ADMIN, responses=error_responses(), summary="Import MCP servers")
async def import_mcp(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[McpImportRequest, Body(examples=[{"config": MCP_EXAMPLE}])],
) -> ImportResponse:
    """Add each server of a configuration.

    Invalid servers are left out with the reason. Servers that are programs need OPPOSABLE_PROGRAMS=true.
    """
    from opposable.tools.mcp.config import read_servers  # lazy: MCP needs the extra "mcp"

    skipped: dict[str, str] = {}
    specs = read_servers(body.config, skipped=skipped)
    left_out = [SkippedItem(where=name, why=reason) for name, reason in skipped.items()]
    return await _import_specs(service, principal, specs, left_out, body)


@router.post("/skill", dependencies=REQUIRE_WRITE, responses=error_responses(), summary="Import skills from a folder")
async def import_skill(
    service: ServiceDep,
    principal: PrincipalDep,
    body: Annotated[SkillImportRequest, Body(examples=[{"path": "skills"}])],
) -> ImportResponse:
    """Import the skill in a folder, or all skills below it.

    OPPOSABLE_SKILLS must list a parent folder.
    """
    folder = _resolve_folder(body.path, service)
    specs, left_out = await asyncio.to_thread(_scan_skills, folder)
    return await _import_specs(service, principal, specs, left_out, body)


async def _import_specs(
    service: Service, principal: Principal, specs: Any, left_out: list[SkippedItem], options: ImportOptions
) -> ImportResponse:
    """Store the specs that are allowed and can become tools, and report the others."""
    accepted: list[AnyToolSpec] = []
    variables: set[str] = set()
    for index, given in enumerate(specs):
        spec = without_refused_auth(given, service.settings)
        variables.update(get_referenced_variables(given))
        try:
            if index >= MAX_TOOLS_PER_IMPORT:
                raise BadInput(
                    f"An import can have at most {MAX_TOOLS_PER_IMPORT:,} tools. Select some of them with `only`."
                )
            await _import_spec(service, principal, spec, options)
        except (ApiError, OpposableError) as error:
            left_out.append(SkippedItem(where=spec.tool_id, why=str(error)))
            continue
        accepted.append(spec)
    if not options.dry_run:
        await service.refresh()
    return ImportResponse(
        accepted=accepted, left_out=left_out, wanted_variables=sorted(variables), dry_run=options.dry_run
    )


async def _import_spec(service: Service, principal: Principal, spec: AnyToolSpec, options: ImportOptions) -> None:
    await authorize_spec(spec, service, principal)
    if not options.replace and await service.store.tools.get(spec.tool_id) is not None:
        raise BadInput(f"The tool {spec.tool_id!r} already exists. Use `replace` to change it, or a `prefix`.")
    await check_loadable(service, spec)
    if not options.dry_run:
        await service.store.tools.save(spec, saved_by=principal.name)


def _resolve_folder(path: str, service: Service) -> Path:
    """Return the folder for an absolute path, or a path relative to an allowed folder.

    Raises:
        BadInput: If there is no such folder inside the allowed ones.
        ApiError: 403, if no folders are allowed.
    """
    if "\0" in path:
        raise BadInput("The path contains a null character.")
    for root in service.settings.skills:
        folder = (root / path).resolve()
        if folder.is_relative_to(root.resolve()) and os.path.isdir(folder):  # noqa: PTH112 - False for a path that is too long
            return folder
    if not service.settings.skills:
        raise forbidden_error(
            "No skill folders are allowed. The owner of the server can list folders in OPPOSABLE_SKILLS."
        )
    raise BadInput(f"There is no folder {path!r} inside the folders in OPPOSABLE_SKILLS.")


def _scan_skills(folder: Path) -> tuple[list[SkillSpec], list[SkippedItem]]:
    from opposable.tools.skills.loader import scan_skills  # lazy: skills need the extra "skills"

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
    skipped = [SkippedItem(where=Path(where).name, why=why) for where, why in scan.rejected_folders.items()]
    skipped += [
        SkippedItem(where=f"{s.skill_id}/{file}", why=why) for s in scan.skills for file, why in s.skipped_files
    ]
    if not specs and not skipped:
        raise BadInput("The folder has no skill (no SKILL.md found). Use a folder that contains a SKILL.md.")
    return specs, skipped
