"""The routes of tools: kept, changed, found, switched, asked how they do."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Response
from pydantic import BaseModel, Field

from opposable.domain.errors import BadInput
from opposable.domain.specs import AnyToolSpec, McpServerSpec, ToolType
from opposable.service.service import Service
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService
from opposable.web.api.pagination import After, Limit, Part, ToolId
from opposable.web.api.spec_authorization import admit
from opposable.web.errors import conflict, documented, not_found

router = APIRouter(prefix="/api/tools", tags=["tools"])
READ, WRITE = [Depends(Needs("tools:read"))], [Depends(Needs("tools:write"))]

SPEC_EXAMPLES: dict[str, Any] = {
    "http": {
        "summary": "An HTTP endpoint",
        "value": {
            "tool_type": "http",
            "tool_id": "stock",
            "description": "How many pieces of an item are in stock.",
            "endpoint": {"url_template": "https://stock.example.com/items/{item}", "method": "GET"},
            "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        },
    },
    "internal": {
        "summary": "A tool of Opposable's own",
        "value": {"tool_type": "http", "tool_id": "sum", "endpoint": {"url_template": "internal://calculator"}},
    },
}
Spec = Annotated[AnyToolSpec, Body(openapi_examples=SPEC_EXAMPLES)]


class Kept(BaseModel):
    """A tool that was kept, and what of it can be called."""

    tool: AnyToolSpec
    accepted: list[str] = Field(description="The names that models know its actions by.", examples=[["stock"]])
    set_aside: dict[str, str] = Field(default={}, description="What of it cannot be called, with the reason.")


class FoundTool(BaseModel):
    """A tool that fits a need; scores compare within one search only."""

    tool_id: str
    action: str = Field(description="Its action that fits; empty where it has but one.")
    name: str = Field(description="The name models know it by.")
    description: str
    score: float


class ToolHealth(BaseModel):
    """How a tool has done in this process since it was registered."""

    tool_id: str
    state: str = Field(description="ok, disabled, open (out of service), half_open; for a server that is away: away.")
    calls: int
    failures: dict[str, int] = Field(description="Calls that failed, by kind of failure.")
    mean_seconds: float
    last_failure: str = ""
    retry_in: float = Field(default=0.0, description="Seconds until a tool out of service is tried again.")
    missing: list[str] = Field(default=[], description="Dependencies that are not there any more.")
    set_aside: dict[str, str] = Field(default={}, description="What of it cannot be called, with the reason.")


@router.get("", dependencies=READ, responses=documented(), summary="Tools by id")
async def list_tools(
    service: TheService,
    *,
    after: After = "",
    limit: Limit = 100,
    type: Annotated[ToolType | None, Query(description="Only tools of this type.")] = None,
    tag: Annotated[str, Query(description="Only tools with this tag.", max_length=100)] = "",
    category: Annotated[str, Query(description="Only tools of this category.", max_length=100)] = "",
    enabled: Annotated[bool | None, Query(description="Only those that are on, or off.")] = None,
) -> Part[AnyToolSpec]:
    """The kept tools that fit every filter."""

    def fits(spec: AnyToolSpec) -> bool:
        return (not tag or tag in spec.tags) and (not category or spec.category == category)

    found: list[AnyToolSpec] = []
    aside: dict[str, str] = {}
    while True:
        page = await service.store.tools.list(after=after, limit=limit, enabled=enabled, tool_type=type)
        aside |= page.set_aside
        for spec in page.items:
            if fits(spec):
                found.append(spec)
            if len(found) == limit:
                more = page.next or spec.tool_id != page.items[-1].tool_id
                return Part(items=found, next=spec.tool_id if more else "", set_aside=aside)
        after = page.next
        if not after:
            return Part(items=found, set_aside=aside)


@router.get("/search", dependencies=READ, responses=documented(), summary="The tools that fit a need best")
async def search_tools(
    service: TheService,
    need: Annotated[str, Query(description="What is to be done, in words.", min_length=1, max_length=2000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Part[FoundTool]:
    """Tools that are on, ranked by the words of their names, descriptions, tags and parameters."""
    found = service.library.search(need, limit)
    return Part(
        items=[
            FoundTool(
                tool_id=one.tool_id, action=one.action, name=one.name, description=one.description, score=one.score
            )
            for one in found
        ]
    )


@router.post("", status_code=201, dependencies=WRITE, responses=documented(409), summary="Keep a new tool")
async def create_tool(service: TheService, principal: ThePrincipal, spec: Spec) -> Kept:
    """Keep a tool and offer it at once."""
    await admit(spec, service, principal)
    if await service.store.tools.get(spec.tool_id) is not None:
        raise conflict(f"There is a tool {spec.tool_id!r} already; change it with PUT, or choose another tool_id.")
    return await kept(service, spec, service.store.tools.add)


@router.get("/{tool_id}", dependencies=READ, responses=documented(404), summary="One tool")
async def get_tool(service: TheService, tool_id: ToolId) -> AnyToolSpec:
    """The tool as it is kept."""
    return await tool_of(service, tool_id)


@router.put("/{tool_id}", dependencies=WRITE, responses=documented(404), summary="Change a tool")
async def update_tool(service: TheService, principal: ThePrincipal, tool_id: ToolId, spec: Spec) -> Kept:
    """Put another spec in the place of a tool's; its id stays."""
    if spec.tool_id != tool_id:
        raise BadInput(f"The path names {tool_id!r} and the body {spec.tool_id!r}; a tool's id stays as it is.")
    await tool_of(service, tool_id)
    await admit(spec, service, principal)
    return await kept(service, spec, service.store.tools.save)


@router.delete("/{tool_id}", status_code=204, dependencies=WRITE, responses=documented(404), summary="Forget a tool")
async def delete_tool(service: TheService, tool_id: ToolId) -> Response:
    """Forget a tool and the agents' bindings to it; what was recorded of its calls stays."""
    if not await service.store.tools.delete(tool_id):
        raise _no_tool(tool_id)
    await service.refresh()
    return Response(status_code=204)


@router.post("/{tool_id}/enable", dependencies=WRITE, responses=documented(404), summary="Switch a tool on")
async def enable_tool(service: TheService, tool_id: ToolId) -> AnyToolSpec:
    """Offer a tool again."""
    return await _switched(service, tool_id, on=True)


@router.post("/{tool_id}/disable", dependencies=WRITE, responses=documented(404), summary="Switch a tool off")
async def disable_tool(service: TheService, tool_id: ToolId) -> AnyToolSpec:
    """Keep a tool, but neither tell models of it nor run it."""
    return await _switched(service, tool_id, on=False)


@router.get("/{tool_id}/health", dependencies=READ, responses=documented(404), summary="How a tool is doing")
async def tool_health(service: TheService, tool_id: ToolId) -> ToolHealth:
    """Calls, failures and the circuit, as this process has seen them."""
    spec = await tool_of(service, tool_id)
    server = service.toolbox.server(tool_id)
    aside = server.registration.set_aside if server is not None else {}
    if service.library.get(tool_id) is None:
        state = "disabled" if not spec.enabled else "away"
        return ToolHealth(tool_id=tool_id, state=state, calls=0, failures={}, mean_seconds=0.0, set_aside=aside)
    health = service.library.health(tool_id)
    return ToolHealth(
        tool_id=tool_id,
        state="away" if tool_id in aside else health.state,
        calls=health.calls,
        failures={str(kind): count for kind, count in health.failures.items()},
        mean_seconds=health.seconds,
        last_failure=health.last_failure,
        retry_in=health.retry_in,
        missing=list(health.missing),
        set_aside=aside,
    )


async def tool_of(service: Service, tool_id: str) -> AnyToolSpec:
    """The kept tool of that id. Raises: `ApiError` 404."""
    spec = await service.store.tools.get(tool_id)
    if spec is None:
        raise _no_tool(tool_id)
    return spec


async def kept(service: Service, spec: AnyToolSpec, keep: Callable[[AnyToolSpec], Any]) -> Kept:
    """Keep a spec by `keep` and offer it. Raises: `BadInput` for one that no tool can be made of, `StoreError`."""
    if spec.enabled:
        await makeable(service, spec)
    await keep(spec)
    await service.refresh()
    server = service.toolbox.server(spec.tool_id)
    if server is not None:
        told = server.registration
        return Kept(tool=spec, accepted=list(told.accepted), set_aside=told.set_aside)
    names = _names(service, spec.tool_id)
    aside = {} if names or not spec.enabled else {spec.tool_id: "It cannot be offered now."}
    return Kept(tool=spec, accepted=names, set_aside=aside)


async def makeable(service: Service, spec: AnyToolSpec) -> None:
    """Refuse a spec that no tool can be made of here. Raises: `BadInput`."""
    if isinstance(spec, McpServerSpec):
        return  # only the server itself can say what it offers
    missing = [one for one in spec.dependencies if one == spec.tool_id or service.library.get(one) is None]
    if missing:
        raise BadInput(f"{spec.tool_id} depends on {', '.join(missing)}, which cannot be had here.")
    try:
        tools = await asyncio.to_thread(service.toolbox.make, spec)
    except ModuleNotFoundError as error:
        raise BadInput(f"{spec.tool_id} needs {error.name}, which is not installed here.") from error
    if not tools:
        raise BadInput(f"{spec.tool_id} brings no tool that could be called.")


def _names(service: Service, tool_id: str) -> list[str]:
    inside = f"{tool_id}."
    return [t.definition.name for t in service.library.tools if t.tool_id == tool_id or t.tool_id.startswith(inside)]


async def _switched(service: Service, tool_id: str, *, on: bool) -> AnyToolSpec:
    if not await service.store.tools.enable(tool_id, on):
        raise _no_tool(tool_id)
    await service.refresh()
    return await tool_of(service, tool_id)


def _no_tool(tool_id: str) -> Exception:
    return not_found(f"There is no tool {tool_id!r}.")
