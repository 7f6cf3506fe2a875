"""The routes that take in what others wrote: an OpenAPI document, MCP servers, a folder with skills."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from pydantic import BaseModel, Field

from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.specs import AnyToolSpec, SkillSpec
from opposable.service.service import Service
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService
from opposable.web.api.spec_authorization import admit, wanted_variables
from opposable.web.api.tools import kept, makeable
from opposable.web.errors import ApiError, documented, forbidden
from opposable.web.principal import Principal

router = APIRouter(prefix="/api/tools/import", tags=["tools"])
WRITE, ADMIN = [Depends(Needs("tools:write"))], [Depends(Needs("admin"))]
MOST = 1000
"""Tools of one import."""

PETS = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com"}],
    "paths": {"/pets/{id}": {"get": {"operationId": "pet", "responses": {"200": {"description": "A pet."}}}}},
}


class Asked(BaseModel):
    """What every import may be told."""

    model_config = {"extra": "forbid"}

    dry_run: bool = Field(default=False, description="Only say what would come of it.")
    replace: bool = Field(default=False, description="Put tools in the place of those that have their ids.")


class OpenApiImport(Asked):
    """An OpenAPI 3 document: itself, its text, or the URL where it is."""

    document: dict[str, Any] | None = Field(default=None, examples=[PETS])
    text: str = Field(default="", description="The document as JSON or YAML text.", max_length=20_000_000)
    url: str = Field(default="", description="Where the document is.", max_length=2000)
    prefix: str = Field(default="", description="Goes before each tool's id and each secret's name.", max_length=40)
    server: str = Field(
        default="", description="Called in place of the servers that the document names.", max_length=2000
    )
    only: list[str] = Field(
        default=[], description="Only the operations with these tags or operation ids.", max_length=MOST
    )


class McpImport(Asked):
    """MCP servers as every client's configuration has them."""

    config: dict[str, Any] = Field(examples=[{"mcpServers": {"notes": {"url": "https://notes.example.com/mcp"}}}])


class SkillImport(Asked):
    """A folder with a skill in it, or with folders of skills."""

    path: str = Field(description="A folder inside of one of the owner's.", max_length=2000, examples=["skills/report"])


class LeftOut(BaseModel):
    """What could not be taken, and why."""

    where: str
    why: str


class Imported(BaseModel):
    """What came of an import."""

    accepted: list[AnyToolSpec]
    left_out: list[LeftOut]
    wanted_variables: list[str] = Field(description="Environment variables that the tools need.")
    dry_run: bool


@router.post("/openapi", dependencies=WRITE, responses=documented(), summary="Make tools of an OpenAPI document")
async def import_openapi(
    service: TheService, principal: ThePrincipal, given: Annotated[OpenApiImport, Body(examples=[{"document": PETS}])]
) -> Imported:
    """A tool for each operation that can be called; what cannot is told with the reason."""
    from opposable.tools.http.openapi.document import is_small, parsed, read_document
    from opposable.tools.http.openapi.importer import http_specs

    if sum((given.document is not None, bool(given.text), bool(given.url))) != 1:
        raise BadInput("Give one of document, text and url.")
    if given.url and not given.url.lower().startswith(("https://", "http://")):
        raise BadInput("The url begins with https:// or http://.")
    source = parsed(given.text.encode("utf-8", "replace"), "The text") if given.text else given.document
    if source is not None and not (isinstance(source, dict) and is_small(source, 2_000_000)):
        raise BadInput("This is no OpenAPI document, or it is too large.")
    document = await read_document(given.url if source is None else source, service.toolbox.client)
    made = await asyncio.to_thread(http_specs, document, prefix=given.prefix, server=given.server, only=given.only)
    left_out = [LeftOut(where=one.where, why=one.why) for one in made.left_out]
    return await _taken(service, principal, made.specs, left_out, given)


@router.post("/mcp", dependencies=ADMIN, responses=documented(), summary="Add MCP servers")
async def import_mcp(
    service: TheService,
    principal: ThePrincipal,
    given: Annotated[
        McpImport, Body(examples=[{"config": {"mcpServers": {"notes": {"url": "https://notes.example.com/mcp"}}}}])
    ],
) -> Imported:
    """Each server of the configuration; programs only where the owner lets them be started."""
    from opposable.tools.mcp.config import read_servers

    return await _taken(service, principal, read_servers(given.config), [], given)


@router.post("/skill", dependencies=WRITE, responses=documented(), summary="Take in skills of a folder")
async def import_skill(
    service: TheService, principal: ThePrincipal, given: Annotated[SkillImport, Body(examples=[{"path": "skills"}])]
) -> Imported:
    """The skill in a folder, or all skills below it; only inside of the owner's folders."""
    folder = _folder(given.path, service)
    specs, left_out = await asyncio.to_thread(_skills, folder)
    return await _taken(service, principal, specs, left_out, given)


async def _taken(service: Service, principal: Principal, specs: Any, left_out: list[LeftOut], given: Asked) -> Imported:
    """Keep what the owner allows and what a tool can be made of; the rest is left out with the reason."""
    accepted: list[AnyToolSpec] = []
    wanted: set[str] = set()
    for number, spec in enumerate(specs):
        wanted.update(wanted_variables(spec))
        try:
            if number >= MOST:
                raise BadInput(f"More than {MOST:,} tools are not taken at once; choose some with `only`.")
            await _take(service, principal, spec, given)
        except (ApiError, OpposableError) as error:
            left_out.append(LeftOut(where=spec.tool_id, why=str(error)))
            continue
        accepted.append(spec)
    return Imported(accepted=accepted, left_out=left_out, wanted_variables=sorted(wanted), dry_run=given.dry_run)


async def _take(service: Service, principal: Principal, spec: AnyToolSpec, given: Asked) -> None:
    await admit(spec, service, principal)
    if not given.replace and await service.store.tools.get(spec.tool_id) is not None:
        raise BadInput(f"There is a tool {spec.tool_id!r} already; give `replace` to change it, or a `prefix`.")
    if given.dry_run:
        await makeable(service, spec)
    else:
        await kept(service, spec, service.store.tools.save)


def _folder(given: str, service: Service) -> Path:
    """The folder that is meant, absolute or inside one of the owner's. Raises: `ApiError` 403, `BadInput`."""
    if "\0" in given:
        raise BadInput("This is no path of a folder.")
    for root in service.settings.skills:
        folder = (root / given).resolve()
        if folder.is_relative_to(root.resolve()) and folder.is_dir():
            return folder
    if not service.settings.skills:
        raise forbidden("Skills are taken from the owner's folders only; the owner can list them in OPPOSABLE_SKILLS.")
    raise BadInput(f"There is no folder {given!r} inside of the owner's folders.")


def _skills(folder: Path) -> tuple[list[SkillSpec], list[LeftOut]]:
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
    aside = [LeftOut(where=Path(where).name, why=why) for where, why in scan.set_aside.items()]
    aside += [LeftOut(where=f"{s.skill_id}/{file}", why=why) for s in scan.skills for file, why in s.left_out]
    if not specs and not aside:
        raise BadInput("There is no skill in this folder: it has no SKILL.md.")
    return specs, aside
