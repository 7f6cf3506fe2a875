"""The routes of runs."""

from typing import Annotated

from fastapi import Depends, Header, Path, Query
from starlette.responses import Response

from opposable.domain.json_forms import run_to_json
from opposable.domain.records import Run, RunKind, RunStatus
from opposable.domain.specs import ID_PATTERN, MAX_ID_CHARACTERS
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse
from opposable.web.api.run_event_sse import parse_last_event_id, respond_with_run_events
from opposable.web.api.schemas import CONVERSATION_ID, CancelResponse, RunResponse
from opposable.web.api.serializers import json_response
from opposable.web.api.text_responses import EVENT_STREAM, describe_text
from opposable.web.errors import error_responses, not_found_error
from opposable.web.principal import Principal

router = ApiRouter(prefix="/api/runs", tags=["runs"], dependencies=[Depends(RequireScope("chat"))])

RunId = Annotated[str, Path(pattern=r"^[A-Za-z0-9\-]{1,64}$", examples=["7f3a0c52d1f94a0cb6e2b1f3a4c5d6e7"])]
STREAM_EXAMPLE = 'id: 7f3:1\nevent: run_started\ndata: {"run_id":"7f3"}\n\n'


async def load_own_run(service: Service, principal: Principal, run_id: str) -> Run:
    """Return a run of the API key, or any run for the scope `admin`.

    Raises:
        ApiError: 404, if the run does not exist or belongs to another key.
    """
    run = await service.runner.get(run_id)
    if run is None or (run.owner != principal.key_id and not principal.has_scope("admin")):
        raise not_found_error(f"There is no run {run_id!r}.")
    return run


@router.get("", response_model=PageResponse[RunResponse], responses=error_responses(), summary="List runs")
async def list_runs(
    service: ServiceDep,
    principal: PrincipalDep,
    agent_id: Annotated[str, Query(pattern=f"^$|{ID_PATTERN}", max_length=MAX_ID_CHARACTERS)] = "",
    conversation_id: Annotated[str, Query(pattern=f"^$|{CONVERSATION_ID}")] = "",
    status: RunStatus | None = None,
    kind: RunKind | None = None,
    after: AfterQuery = "",
    limit: LimitQuery = 100,
) -> Response:
    """List the runs of the API key, newest first; those of all keys for the scope `admin`.

    A new run appears within a second.
    """
    is_admin = principal.has_scope("admin")
    if conversation_id and not is_admin:
        conversation_id = await service.find_stored_conversation_id(conversation_id, principal.key_id)
    page = await service.store.runs.list(
        owner=None if is_admin else principal.key_id,
        agent_id=agent_id,
        conversation_id=conversation_id,
        status=status,
        kind=kind,
        after=after,
        limit=limit,
    )
    return json_response({"items": [run_to_json(run) for run in page.items], "next": page.next_cursor})


@router.get("/{run_id}", response_model=RunResponse, responses=error_responses(404), summary="Get a run")
async def get_run(service: ServiceDep, principal: PrincipalDep, run_id: RunId) -> Response:
    """Get the current state of a run, whichever process executes it."""
    return json_response(run_to_json(await load_own_run(service, principal, run_id)))


@router.get(
    "/{run_id}/events",
    response_class=Response,
    responses=error_responses(404) | describe_text(EVENT_STREAM, "A stream of events.", STREAM_EXAMPLE),
    summary="Stream the events of a run",
)
async def get_run_events(
    service: ServiceDep,
    principal: PrincipalDep,
    run_id: RunId,
    last_event_id: Annotated[str | None, Header(description="The id of the last received event.")] = None,
) -> Response:
    """Stream the events of a run until it ends.

    The stream starts with the first event, or after the last received one.

    Closing the connection does not stop the run.
    """
    _, after = parse_last_event_id(last_event_id, run_id)
    run = await load_own_run(service, principal, run_id)
    return respond_with_run_events(service, run.run_id, after)


@router.post("/{run_id}/cancel", response_model=CancelResponse, responses=error_responses(404), summary="Cancel a run")
async def cancel_run(service: ServiceDep, principal: PrincipalDep, run_id: RunId) -> Response:
    """Cancel a run of any process.

    `cancelled` is false if the run has already ended.
    """
    await load_own_run(service, principal, run_id)
    return json_response({"run_id": run_id, "cancelled": await service.runner.cancel(run_id)})
