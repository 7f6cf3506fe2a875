"""The routes that say how the service is: up, ready, and what it counted."""

import logging
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from starlette.requests import Request

from opposable.service.service import Service
from opposable.web.api.dependencies import ThePrincipal, TheService
from opposable.web.errors import documented, forbidden, not_found
from opposable.web.telemetry.metrics import Metrics

router = APIRouter(tags=["service"])
log = logging.getLogger("opposable.web")
OK = "ok"


class Readiness(BaseModel):
    """Whether the service can do its work, part by part."""

    ready: bool
    parts: dict[str, str] = Field(
        description="ok, or what is wrong; told in words only to keys with the scope `tools:read`.",
        examples=[{"database": "ok", "valkey": "ok", "recorder": "ok", "models": "ok", "mcp_servers": "ok"}],
    )


NOT_READY: dict[int | str, dict[str, Any]] = {503: {"model": Readiness, "description": "A part is not ready."}}
TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


@router.get("/readyz", responses=NOT_READY, summary="Whether the service is ready, and which part is not")
async def ready(service: TheService, principal: ThePrincipal, response: Response) -> Readiness:
    """Every part the service needs. An MCP server that is away is told, but keeps nobody from being served."""
    parts = await _parts(service)
    wrong = {name: said for name, said in parts.items() if said != OK}
    is_ready = not (wrong.keys() - {"mcp_servers"})
    if not is_ready:
        log.warning("Not ready: %s", "; ".join(f"{name}: {said}" for name, said in wrong.items()))
        response.status_code = 503
    if not principal.may("tools:read"):
        parts = {name: said if said == OK else "not ready" for name, said in parts.items()}
    return Readiness(ready=is_ready, parts=parts)


@router.get(
    "/metrics", responses=documented(404) | TEXT, response_class=Response, summary="What was counted, for Prometheus"
)
async def metrics(request: Request, principal: ThePrincipal) -> Response:
    """Requests, runs, calls of tools, tokens and records, as this process counted them."""
    if not principal.may("tools:read"):
        raise forbidden("This key lacks the scope 'tools:read'.")
    counted: Metrics | None = getattr(request.app.state, "metrics", None)
    if counted is None:
        raise not_found("This service counts nothing: prometheus-client is not installed.")
    body, kind = counted.exposition()
    return Response(body, headers={"content-type": kind})


async def _parts(service: Service) -> dict[str, str]:
    parts = {name: said or OK for name, said in (await service.store.ready()).items()}
    parts["recorder"] = service.recorder.state.error or OK
    parts["models"] = OK if service.models else "There is no model."
    if parts["database"] == OK:
        parts["mcp_servers"] = "; ".join(await _away(service)) or OK
    return parts


async def _away(service: Service) -> list[str]:
    """The MCP servers that do not answer now, with the reason."""
    away = []
    for spec in (await service.store.tools.list(tool_type="mcp_server", enabled=True, limit=500)).items:
        server = service.toolbox.server(spec.tool_id)
        if server is None or server.health.state != "ready":
            away.append(f"{spec.tool_id}: {(server and server.health.reason) or 'it is not connected'}")
    return away
