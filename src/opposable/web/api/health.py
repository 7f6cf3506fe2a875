"""The routes that say how the service is: up, ready, and what it counted."""

import logging
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from starlette.requests import Request

from opposable.service.service import Service
from opposable.web.api.dependencies import PrincipalDep, ServiceDep
from opposable.web.errors import error_responses, forbidden_error, not_found_error
from opposable.web.telemetry.metrics import Metrics

router = APIRouter(tags=["service"])
log = logging.getLogger("opposable.web")
OK = "ok"


class ReadinessResponse(BaseModel):
    """Whether the service can do its work, part by part."""

    ready: bool
    parts: dict[str, str] = Field(
        description="ok, or what is wrong; told in words only to keys with the scope `tools:read`.",
        examples=[{"database": "ok", "valkey": "ok", "recorder": "ok", "models": "ok", "mcp_servers": "ok"}],
    )


NOT_READY_RESPONSE: dict[int | str, dict[str, Any]] = {
    503: {"model": ReadinessResponse, "description": "A part is not ready."}
}
METRICS_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.get("/readyz", responses=NOT_READY_RESPONSE, summary="Whether the service is ready, and which part is not")
async def get_readiness(service: ServiceDep, principal: PrincipalDep, response: Response) -> ReadinessResponse:
    """Every part the service needs. An MCP server that is away is told, but keeps nobody from being served."""
    parts = await _check_parts(service)
    wrong = {name: said for name, said in parts.items() if said != OK}
    is_ready = not (wrong.keys() - {"mcp_servers"})
    if not is_ready:
        log.warning("Not ready: %s", "; ".join(f"{name}: {said}" for name, said in wrong.items()))
        response.status_code = 503
    if not principal.has_scope("tools:read"):
        parts = {name: said if said == OK else "not ready" for name, said in parts.items()}
    return ReadinessResponse(ready=is_ready, parts=parts)


@router.get(
    "/metrics",
    responses=error_responses(404) | METRICS_RESPONSE,
    response_class=Response,
    summary="What was counted, for Prometheus",
)
async def get_metrics(request: Request, principal: PrincipalDep) -> Response:
    """Requests, runs, calls of tools, tokens and records, as this process counted them."""
    if not principal.has_scope("tools:read"):
        raise forbidden_error("This key lacks the scope 'tools:read'.")
    counted: Metrics | None = getattr(request.app.state, "metrics", None)
    if counted is None:
        raise not_found_error("This service counts nothing: prometheus-client is not installed.")
    body, kind = counted.render()
    return Response(body, headers={"content-type": kind})


async def _check_parts(service: Service) -> dict[str, str]:
    parts = {name: said or OK for name, said in (await service.store.check_health()).items()}
    parts["recorder"] = service.recorder.status.error or OK
    parts["models"] = OK if service.models else "There is no model."
    if parts["database"] == OK:
        parts["mcp_servers"] = "; ".join(await _list_unreachable_servers(service)) or OK
    return parts


async def _list_unreachable_servers(service: Service) -> list[str]:
    """The MCP servers that do not answer now, with the reason."""
    away = []
    for spec in (await service.store.tools.list(tool_type="mcp_server", enabled=True, limit=500)).items:
        server = service.spec_loader.get_server(spec.tool_id)
        if server is None or server.health.state != "ready":
            away.append(f"{spec.tool_id}: {(server and server.health.reason) or 'it is not connected'}")
    return away
