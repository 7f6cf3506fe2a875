"""The routes of readiness and metrics."""

import logging
from typing import Any

from fastapi import Depends, Response
from pydantic import BaseModel, Field
from starlette.requests import Request

from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.text_responses import describe_text
from opposable.web.errors import error_responses
from opposable.web.telemetry.metrics import Metrics

router = ApiRouter(tags=["service"])
log = logging.getLogger("opposable.web")
OK = "ok"


class ReadinessResponse(BaseModel):
    """Whether the service and each of its parts are ready."""

    ready: bool
    parts: dict[str, str] = Field(
        description="ok, or the problem. Only keys with the scope `tools:read` see the problem.",
        examples=[{"database": "ok", "valkey": "ok", "recorder": "ok", "models": "ok", "mcp_servers": "ok"}],
    )


NOT_READY_RESPONSE: dict[int | str, dict[str, Any]] = {
    503: {"model": ReadinessResponse, "description": "A part of the service is not ready."}
}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=NOT_READY_RESPONSE, summary="Get the readiness of the service")
async def get_readiness(service: ServiceDep, principal: PrincipalDep, response: Response) -> ReadinessResponse:
    """Check every part of the service.

    An unreachable MCP server is reported, but the service stays ready.
    """
    parts = await _check_parts(service)
    problems = {name: status for name, status in parts.items() if status != OK}
    is_ready = not (problems.keys() - {"mcp_servers"})
    if not is_ready:
        log.warning("Service is not ready: %s", "; ".join(f"{name}: {text}" for name, text in problems.items()))
        response.status_code = 503
    if not principal.has_scope("tools:read"):
        parts = {name: status if status == OK else "not ready" for name, status in parts.items()}
    return ReadinessResponse(ready=is_ready, parts=parts)


@router.get(
    "/metrics",
    dependencies=[Depends(RequireScope("tools:read"))],
    responses=error_responses(404) | describe_text("text/plain", "The text format of Prometheus."),
    response_class=Response,
    summary="Get the metrics for Prometheus",
)
async def get_metrics(request: Request) -> Response:
    """Get the requests, runs, tool calls, tokens and records of all server processes."""
    metrics: Metrics = request.app.state.metrics
    body, media_type = metrics.render()
    return Response(body, headers={"content-type": media_type})


async def _check_parts(service: Service) -> dict[str, str]:
    parts = {name: problem or OK for name, problem in (await service.store.check_health()).items()}
    parts["recorder"] = service.recorder.status.error or OK
    parts["models"] = OK if service.models else "No model is configured."
    if parts["database"] == OK:
        parts["mcp_servers"] = "; ".join(await _list_unreachable_servers(service)) or OK
    return parts


async def _list_unreachable_servers(service: Service) -> list[str]:
    """Return the MCP servers that do not respond, with the reason."""
    unreachable = []
    for spec in (await service.store.tools.list(tool_type="mcp_server", enabled=True, limit=500)).items:
        server = service.spec_loader.get_server(spec.tool_id)
        if server is None or server.health.state != "ready":
            unreachable.append(f"{spec.tool_id}: {(server and server.health.reason) or 'it is not connected'}")
    return unreachable
