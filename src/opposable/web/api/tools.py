"""The routes of tools: kept, changed, found, switched, asked how they do."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Response
from pydantic import BaseModel, Field

from opposable.domain.errors import BadInput
from opposable.domain.specs import AnyToolSpec, McpServerSpec, ToolType
from opposable.service.service import Service
from opposable.web.api.dependencies import PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse, ToolIdPath
from opposable.web.api.spec_authorization import authorize_spec
from opposable.web.errors import conflict_error, error_responses, not_found_error

router = APIRouter(prefix="/api/tools", tags=["tools"])
REQUIRE_READ, REQUIRE_WRITE = [Depends(RequireScope("tools:read"))], [Depends(RequireScope("tools:write"))]

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
ToolSpecBody = Annotated[AnyToolSpec, Body(openapi_examples=SPEC_EXAMPLES)]


class SaveToolResponse(BaseModel):
    """A tool that was kept, and what of it can be called."""

    tool: AnyToolSpec
    accepted: list[str] = Field(description="The names that models know its actions by.", examples=[["stock"]])
    set_aside: dict[str, str] = Field(default={}, description="What of it cannot be called, with the reason.")


class ToolSearchResult(BaseModel):
    """A tool that fits a need; scores compare within one search only."""

    tool_id: str
    action: str = Field(description="Its action that fits; empty where it has but one.")
    name: str = Field(description="The name models know it by.")
    description: str
    score: float


class ToolHealthResponse(BaseModel):
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


@router.get("", dependencies=REQUIRE_READ, responses=error_responses(), summary="Tools by id")
async def list_tools(
    service: ServiceDep,
    *,
    after: AfterQuery = "",
    limit: LimitQuery = 100,
    type: Annotated[ToolType | None, Query(description="Only tools of this type.")] = None,
    tag: Annotated[str, Query(description="Only tools with this tag.", max_length=100)] = "",
    category: Annotated[str, Query(description="Only tools of this category.", max_length=100)] = "",
    enabled: Annotated[bool | None, Query(description="Only those that are on, or off.")] = None,
) -> PageResponse[AnyToolSpec]:
    """The kept tools that fit every filter."""

    def fits(spec: AnyToolSpec) -> bool:
        return (not tag or tag in spec.tags) and (not category or spec.category == category)

    found: list[AnyToolSpec] = []
    aside: dict[str, str] = {}
    while True:
        page = await service.store.tools.list(after=after, limit=limit, enabled=enabled, tool_type=type)
        aside |= page.unreadable_rows
        for spec in page.items:
            if fits(spec):
                found.append(spec)
            if len(found) == limit:
                more = page.next_cursor or spec.tool_id != page.items[-1].tool_id
                return PageResponse(items=found, next=spec.tool_id if more else "", set_aside=aside)
        after = page.next_cursor
        if not after:
            return PageResponse(items=found, set_aside=aside)


@router.get("/search", dependencies=REQUIRE_READ, responses=error_responses(), summary="The tools that fit a need best")
async def search_tools(
    service: ServiceDep,
    need: Annotated[str, Query(description="What is to be done, in words.", min_length=1, max_length=2000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> PageResponse[ToolSearchResult]:
    """Tools that are on, ranked by the words of their names, descriptions, tags and parameters."""
    found = service.library.search(need, limit)
    return PageResponse(
        items=[
            ToolSearchResult(
                tool_id=one.tool_id, action=one.action, name=one.name, description=one.description, score=one.score
            )
            for one in found
        ]
    )


@router.post("", status_code=201, dependencies=REQUIRE_WRITE, responses=error_responses(409), summary="Keep a new tool")
async def create_tool(service: ServiceDep, principal: PrincipalDep, spec: ToolSpecBody) -> SaveToolResponse:
    """Keep a tool and offer it at once."""
    await authorize_spec(spec, service, principal)
    if await service.store.tools.get(spec.tool_id) is not None:
        raise conflict_error(
            f"There is a tool {spec.tool_id!r} already; change it with PUT, or choose another tool_id."
        )
    return await save_tool(service, spec, service.store.tools.add)


@router.get("/{tool_id}", dependencies=REQUIRE_READ, responses=error_responses(404), summary="One tool")
async def get_tool(service: ServiceDep, tool_id: ToolIdPath) -> AnyToolSpec:
    """The tool as it is kept."""
    return await load_tool(service, tool_id)


@router.put("/{tool_id}", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Change a tool")
async def update_tool(
    service: ServiceDep, principal: PrincipalDep, tool_id: ToolIdPath, spec: ToolSpecBody
) -> SaveToolResponse:
    """Put another spec in the place of a tool's; its id stays."""
    if spec.tool_id != tool_id:
        raise BadInput(f"The path names {tool_id!r} and the body {spec.tool_id!r}; a tool's id stays as it is.")
    await load_tool(service, tool_id)
    await authorize_spec(spec, service, principal)
    return await save_tool(service, spec, service.store.tools.save)


@router.delete(
    "/{tool_id}", status_code=204, dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Forget a tool"
)
async def delete_tool(service: ServiceDep, tool_id: ToolIdPath) -> Response:
    """Forget a tool and the agents' bindings to it; what was recorded of its calls stays."""
    if not await service.store.tools.delete(tool_id):
        raise _tool_not_found_error(tool_id)
    await service.refresh()
    return Response(status_code=204)


@router.post(
    "/{tool_id}/enable", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Switch a tool on"
)
async def enable_tool(service: ServiceDep, tool_id: ToolIdPath) -> AnyToolSpec:
    """Offer a tool again."""
    return await _set_enabled(service, tool_id, enabled=True)


@router.post(
    "/{tool_id}/disable", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Switch a tool off"
)
async def disable_tool(service: ServiceDep, tool_id: ToolIdPath) -> AnyToolSpec:
    """Keep a tool, but neither tell models of it nor run it."""
    return await _set_enabled(service, tool_id, enabled=False)


@router.get(
    "/{tool_id}/health", dependencies=REQUIRE_READ, responses=error_responses(404), summary="How a tool is doing"
)
async def get_tool_health(service: ServiceDep, tool_id: ToolIdPath) -> ToolHealthResponse:
    """Calls, failures and the circuit, as this process has seen them."""
    spec = await load_tool(service, tool_id)
    server = service.spec_loader.get_server(tool_id)
    aside = server.registration.set_aside if server is not None else {}
    if service.library.get_spec(tool_id) is None:
        state = "disabled" if not spec.enabled else "away"
        return ToolHealthResponse(tool_id=tool_id, state=state, calls=0, failures={}, mean_seconds=0.0, set_aside=aside)
    health = service.library.get_health(tool_id)
    return ToolHealthResponse(
        tool_id=tool_id,
        state="away" if tool_id in aside else health.state,
        calls=health.calls,
        failures={str(kind): count for kind, count in health.failures.items()},
        mean_seconds=health.mean_seconds,
        last_failure=health.last_failure,
        retry_in=health.retry_after_seconds,
        missing=list(health.missing_dependencies),
        set_aside=aside,
    )


async def load_tool(service: Service, tool_id: str) -> AnyToolSpec:
    """The kept tool of that id. Raises: `ApiError` 404."""
    spec = await service.store.tools.get(tool_id)
    if spec is None:
        raise _tool_not_found_error(tool_id)
    return spec


async def save_tool(service: Service, spec: AnyToolSpec, save: Callable[[AnyToolSpec], Any]) -> SaveToolResponse:
    """Keep a spec by `keep` and offer it. Raises: `BadInput` for one that no tool can be made of, `StoreError`."""
    if spec.enabled:
        await check_loadable(service, spec)
    await save(spec)
    await service.refresh()
    server = service.spec_loader.get_server(spec.tool_id)
    if server is not None:
        told = server.registration
        return SaveToolResponse(tool=spec, accepted=list(told.accepted), set_aside=told.set_aside)
    names = _get_tool_names(service, spec.tool_id)
    aside = {} if names or not spec.enabled else {spec.tool_id: "It cannot be offered now."}
    return SaveToolResponse(tool=spec, accepted=names, set_aside=aside)


async def check_loadable(service: Service, spec: AnyToolSpec) -> None:
    """Refuse a spec that no tool can be made of here. Raises: `BadInput`."""
    if isinstance(spec, McpServerSpec):
        return  # only the server itself can say what it offers
    missing = [one for one in spec.dependencies if one == spec.tool_id or service.library.get_spec(one) is None]
    if missing:
        raise BadInput(f"{spec.tool_id} depends on {', '.join(missing)}, which cannot be had here.")
    try:
        tools = await asyncio.to_thread(service.spec_loader.create_tools, spec)
    except ModuleNotFoundError as error:
        raise BadInput(f"{spec.tool_id} needs {error.name}, which is not installed here.") from error
    if not tools:
        raise BadInput(f"{spec.tool_id} brings no tool that could be called.")


def _get_tool_names(service: Service, tool_id: str) -> list[str]:
    inside = f"{tool_id}."
    return [t.definition.name for t in service.library.tools if t.tool_id == tool_id or t.tool_id.startswith(inside)]


async def _set_enabled(service: Service, tool_id: str, *, enabled: bool) -> AnyToolSpec:
    if not await service.store.tools.set_enabled(tool_id, enabled):
        raise _tool_not_found_error(tool_id)
    await service.refresh()
    return await load_tool(service, tool_id)


def _tool_not_found_error(tool_id: str) -> Exception:
    return not_found_error(f"There is no tool {tool_id!r}.")
