"""The routes of tools: create, change, search, enable, disable, health."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Body, Depends, Query, Response
from pydantic import BaseModel, Field

from opposable.domain.errors import BadInput
from opposable.domain.specs import AnyToolSpec, McpServerSpec, ToolType
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse, ToolIdPath
from opposable.web.api.spec_authorization import authorize_spec
from opposable.web.errors import conflict_error, error_responses, not_found_error

router = ApiRouter(prefix="/api/tools", tags=["tools"])
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
    """A stored tool and its available actions."""

    tool: AnyToolSpec
    accepted: list[str] = Field(description="The names of its actions for models.", examples=[["stock"]])
    rejected: dict[str, str] = Field(default={}, description="Actions that are not available, with the reason.")


class ToolSearchResult(BaseModel):
    """A search result. Scores are comparable within one search only."""

    model_config = {"from_attributes": True}

    tool_id: str
    action: str = Field(description="The matching action; empty for a tool with one action.")
    name: str = Field(description="The name of the action for models.")
    description: str
    score: float


class ToolHealthResponse(BaseModel):
    """The health of a tool in this process since it was registered."""

    tool_id: str
    state: str = Field(description="ok, disabled, open (out of service), half_open, or away (unreachable server).")
    calls: int = Field(description="All calls, also those refused before the tool ran.")
    failures: dict[str, int] = Field(description="How many of the calls failed or were refused, by kind of failure.")
    mean_seconds: float = Field(description="The mean wall time of all calls.")
    last_failure: str = Field(
        default="", description="The message of the last failed call, of any key; only for the scope `admin`."
    )
    retry_in: float = Field(default=0.0, description="Seconds until a tool out of service is retried.")
    missing: list[str] = Field(default=[], description="Dependencies that are no longer available.")
    rejected: dict[str, str] = Field(default={}, description="Actions that are not available, with the reason.")


class ToolVersionResponse(BaseModel):
    """A version of a tool. To restore it, update the tool with its spec."""

    tool: AnyToolSpec
    version: int = Field(examples=[1])
    saved_by: str = Field(description="The name of the API key that saved it; empty if unknown.")
    created_at: datetime


@router.get("", dependencies=REQUIRE_READ, responses=error_responses(), summary="List tools")
async def list_tools(
    service: ServiceDep,
    *,
    after: AfterQuery = "",
    limit: LimitQuery = 100,
    type: Annotated[ToolType | None, Query(description="Only tools of this type.")] = None,
    tag: Annotated[str, Query(description="Only tools with this tag.", max_length=100)] = "",
    category: Annotated[str, Query(description="Only tools of this category.", max_length=100)] = "",
    enabled: Annotated[bool | None, Query(description="Only enabled or disabled tools.")] = None,
) -> PageResponse[AnyToolSpec]:
    """List the stored tools that match all filters, by id."""

    def matches(spec: AnyToolSpec) -> bool:
        return (not tag or tag in spec.tags) and (not category or spec.category == category)

    matching: list[AnyToolSpec] = []
    unreadable_rows: dict[str, str] = {}
    while True:
        page = await service.store.tools.list(after=after, limit=limit, enabled=enabled, tool_type=type)
        unreadable_rows |= page.unreadable_rows
        for spec in page.items:
            if matches(spec):
                matching.append(spec)
            if len(matching) == limit:
                more = page.next_cursor or spec.tool_id != page.items[-1].tool_id
                return PageResponse(items=matching, next=spec.tool_id if more else "", unreadable=unreadable_rows)
        after = page.next_cursor
        if not after:
            return PageResponse(items=matching, unreadable=unreadable_rows)


@router.get("/search", dependencies=REQUIRE_READ, responses=error_responses(), summary="Search tools")
async def search_tools(
    service: ServiceDep,
    need: Annotated[str, Query(description="A description of the task.", min_length=1, max_length=2000)],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
) -> PageResponse[ToolSearchResult]:
    """Search the enabled tools, best match first.

    The search uses their names, descriptions, tags and parameters, and what they mean in any language.
    """
    matches = await service.library.search_by_meaning(need, limit)
    return PageResponse(items=[ToolSearchResult.model_validate(match) for match in matches])


@router.post("", status_code=201, dependencies=REQUIRE_WRITE, responses=error_responses(409), summary="Create a tool")
async def create_tool(service: ServiceDep, principal: PrincipalDep, spec: ToolSpecBody) -> SaveToolResponse:
    """Store a new tool and load it."""
    await authorize_spec(spec, service, principal)
    if await service.store.tools.get(spec.tool_id) is not None:
        raise conflict_error(
            f"There is a tool {spec.tool_id!r} already; change it with PUT, or choose another tool_id."
        )
    return await save_tool(service, spec, partial(service.store.tools.add, saved_by=principal.name))


@router.get("/{tool_id}", dependencies=REQUIRE_READ, responses=error_responses(404), summary="Get a tool")
async def get_tool(service: ServiceDep, tool_id: ToolIdPath) -> AnyToolSpec:
    """Get the spec of a tool."""
    return await load_tool(service, tool_id)


@router.put("/{tool_id}", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Update a tool")
async def update_tool(
    service: ServiceDep, principal: PrincipalDep, tool_id: ToolIdPath, spec: ToolSpecBody
) -> SaveToolResponse:
    """Replace the spec of a tool. Its id cannot change."""
    if spec.tool_id != tool_id:
        raise BadInput(f"The path has the id {tool_id!r} and the body {spec.tool_id!r}. The id cannot change.")
    await load_tool(service, tool_id)
    await authorize_spec(spec, service, principal)
    return await save_tool(service, spec, partial(service.store.tools.save, saved_by=principal.name))


@router.delete(
    "/{tool_id}", status_code=204, dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Delete a tool"
)
async def delete_tool(service: ServiceDep, tool_id: ToolIdPath) -> Response:
    """Delete a tool and its bindings. The records of its calls remain."""
    if not await service.store.tools.delete(tool_id):
        raise _tool_not_found_error(tool_id)
    await service.refresh()
    return Response(status_code=204)


@router.get(
    "/{tool_id}/versions",
    dependencies=REQUIRE_READ,
    responses=error_responses(404),
    summary="List the versions of a tool",
)
async def list_tool_versions(service: ServiceDep, tool_id: ToolIdPath) -> PageResponse[ToolVersionResponse]:
    """List the latest 50 versions, newest first. Enabling or disabling a tool creates no version."""
    await load_tool(service, tool_id)
    records = await service.store.tools.list_versions(tool_id)
    return PageResponse(
        items=[
            ToolVersionResponse(
                tool=record.spec, version=record.version, saved_by=record.saved_by, created_at=record.created_at
            )
            for record in records
        ]
    )


@router.post("/{tool_id}/enable", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Enable a tool")
async def enable_tool(service: ServiceDep, tool_id: ToolIdPath) -> AnyToolSpec:
    """Enable a tool and load it."""
    return await _set_enabled(service, tool_id, enabled=True)


@router.post("/{tool_id}/disable", dependencies=REQUIRE_WRITE, responses=error_responses(404), summary="Disable a tool")
async def disable_tool(service: ServiceDep, tool_id: ToolIdPath) -> AnyToolSpec:
    """Disable a tool. It stays stored, but models cannot see or call it."""
    return await _set_enabled(service, tool_id, enabled=False)


@router.get(
    "/{tool_id}/health", dependencies=REQUIRE_READ, responses=error_responses(404), summary="Get the health of a tool"
)
async def get_tool_health(service: ServiceDep, principal: PrincipalDep, tool_id: ToolIdPath) -> ToolHealthResponse:
    """Get the calls, failures and circuit-breaker state of a tool in this process."""
    spec = await load_tool(service, tool_id)
    server = service.spec_loader.get_server(tool_id)
    rejected = server.registration.rejected if server is not None else {}
    if service.library.get_spec(tool_id) is None:
        state = "disabled" if not spec.enabled else "away"
        return ToolHealthResponse(
            tool_id=tool_id, state=state, calls=0, failures={}, mean_seconds=0.0, rejected=rejected
        )
    health = service.library.get_health(tool_id)
    return ToolHealthResponse(
        tool_id=tool_id,
        state="away" if tool_id in rejected else health.state,
        calls=health.calls,
        failures={str(kind): count for kind, count in health.failures.items()},
        mean_seconds=health.mean_seconds,
        last_failure=health.last_failure if principal.has_scope("admin") else "",
        retry_in=health.retry_after_seconds,
        missing=list(health.missing_dependencies),
        rejected=rejected,
    )


async def load_tool(service: Service, tool_id: str) -> AnyToolSpec:
    """Return the stored spec of a tool.

    Raises:
        ApiError: 404, if there is no such tool.
    """
    spec = await service.store.tools.get(tool_id)
    if spec is None:
        raise _tool_not_found_error(tool_id)
    return spec


async def save_tool(service: Service, spec: AnyToolSpec, save: Callable[[AnyToolSpec], Any]) -> SaveToolResponse:
    """Store a spec with `save` and load it.

    Raises:
        BadInput: If the spec cannot become a tool.
        StoreError: If the store fails.
    """
    if spec.enabled:
        await check_loadable(service, spec)
    await save(spec)
    await service.refresh()
    server = service.spec_loader.get_server(spec.tool_id)
    if server is not None:
        registration = server.registration
        return SaveToolResponse(tool=spec, accepted=list(registration.accepted), rejected=registration.rejected)
    names = [tool.name for tool in service.library.get_registered_tools(spec.tool_id)]
    rejected = {} if names or not spec.enabled else {spec.tool_id: "The tool cannot be loaded now."}
    return SaveToolResponse(tool=spec, accepted=names, rejected=rejected)


async def check_loadable(service: Service, spec: AnyToolSpec) -> None:
    """Check that a spec can become a tool in this process.

    Raises:
        BadInput: If it cannot.
    """
    if isinstance(spec, McpServerSpec):
        return  # its tools are known only after connecting
    missing = [
        tool_id for tool_id in spec.dependencies if tool_id == spec.tool_id or service.library.get_spec(tool_id) is None
    ]
    if missing:
        raise BadInput(f"{spec.tool_id} depends on {', '.join(missing)}, which is not available.")
    try:
        tools = await asyncio.to_thread(service.spec_loader.create_tools, spec)
    except ModuleNotFoundError as error:
        raise BadInput(f"{spec.tool_id} needs {error.name}, which is not installed on the server.") from error
    if not tools:
        raise BadInput(f"{spec.tool_id} defines no callable tool.")


async def _set_enabled(service: Service, tool_id: str, *, enabled: bool) -> AnyToolSpec:
    if not await service.store.tools.set_enabled(tool_id, enabled):
        raise _tool_not_found_error(tool_id)
    await service.refresh()
    return await load_tool(service, tool_id)


def _tool_not_found_error(tool_id: str) -> Exception:
    return not_found_error(f"There is no tool {tool_id!r}.")
