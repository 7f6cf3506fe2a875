"""The routes of batches: tasks for an agent, executed by worker processes."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Path
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from opposable.app.default_store import require_postgresql
from opposable.app.inputs import MAX_TASK_CHARACTERS
from opposable.domain.batches import DEFAULT_BATCH_CONCURRENCY, Batch, BatchStatus, BatchTask, QueuedRunStatus
from opposable.domain.specs import ID_PATTERN, MAX_ID_CHARACTERS, RateLimit
from opposable.service.batches import batch_to_json, create_batch, require_unique_ids
from opposable.service.service import Service
from opposable.web.api.chat import resolve_agent
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse
from opposable.web.api.serializers import dump_json, json_response
from opposable.web.api.text_responses import JSON_LINES, describe_text
from opposable.web.errors import conflict_error, error_responses, not_found_error
from opposable.web.principal import Principal

router = ApiRouter(prefix="/api/batches", tags=["batches"], dependencies=[Depends(RequireScope("chat"))])
BatchId = Annotated[str, Path(pattern=r"^[A-Za-z0-9\-]{1,64}$", examples=["0" * 32])]
Concurrency = Annotated[int, Field(ge=1, le=1000)]
RESULT_EXAMPLE = '{"id":"1","status":"finished"}'


class TaskRequest(BaseModel):
    """A task with the id of its result."""

    model_config = {"extra": "forbid"}

    id: str = Field(min_length=1, max_length=200)
    task: str = Field(min_length=1, max_length=MAX_TASK_CHARACTERS, pattern=r"\S")
    expected: list[Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"\S")]] = Field(
        default=[], max_length=100, description="Texts that a correct answer contains, in an evaluation set."
    )


class BatchRequest(BaseModel):
    """Tasks for one agent. The limits hold for this batch, over all workers together."""

    model_config = {"extra": "forbid"}

    agent_id: str | None = Field(
        default=None, pattern=ID_PATTERN, max_length=MAX_ID_CHARACTERS, description="Default: the default agent."
    )
    tasks: list[TaskRequest] = Field(min_length=1, max_length=100_000)
    concurrency: int = Field(default=DEFAULT_BATCH_CONCURRENCY, ge=1, le=10_000, description="Tasks at a time.")
    model_rate: RateLimit | None = Field(default=None, description="The limit of model requests.")
    tool_rates: dict[str, RateLimit] = Field(default={}, description="The limits of calls by tool id.")
    model_concurrency: Concurrency | None = Field(default=None, description="Model requests at a time.")
    tool_concurrency: dict[str, Concurrency] = Field(default={}, description="Calls at a time by tool id.")


class BatchResponse(BaseModel):
    """A batch with its progress. The cost is in the currency of the model's price."""

    batch_id: str
    agent_id: str
    status: BatchStatus
    total: int
    ended: int
    counts: dict[QueuedRunStatus, int]
    input_tokens: int
    output_tokens: int
    cost: float
    concurrency: int
    model_rate: RateLimit | None
    tool_rates: dict[str, RateLimit]
    model_concurrency: int | None
    tool_concurrency: dict[str, int]
    created_at: datetime
    ended_at: datetime | None


@router.post(
    "", status_code=201, response_model=BatchResponse, responses=error_responses(404), summary="Create a batch"
)
async def add_batch(service: ServiceDep, principal: PrincipalDep, body: BatchRequest) -> Response:
    """Store tasks for an agent. Workers execute them, each as a run of its own."""
    require_postgresql(service.settings)
    agent = await resolve_agent(service, body.agent_id)
    tasks = require_unique_ids([BatchTask(task.id, task.task, tuple(task.expected)) for task in body.tasks])
    batch = await create_batch(
        service.store,
        agent,
        tasks,
        owner=principal.key_id,
        concurrency=body.concurrency,
        model_rate=body.model_rate,
        tool_rates=body.tool_rates,
        model_concurrency=body.model_concurrency,
        tool_concurrency=body.tool_concurrency,
    )
    return json_response(await _describe(service, batch), 201)


@router.get("", response_model=PageResponse[BatchResponse], responses=error_responses(), summary="List batches")
async def list_batches(
    service: ServiceDep, principal: PrincipalDep, after: AfterQuery = "", limit: LimitQuery = 100
) -> Response:
    """List the batches of the API key, newest first; all batches for the scope `admin`.

    Batches of the command line belong to no key.
    """
    owner = None if principal.has_scope("admin") else principal.key_id
    page = await service.store.batches.list(owner=owner, after=after, limit=limit)
    progress = await service.store.batches.get_progress_by_batch([batch.batch_id for batch in page.items])
    items = [batch_to_json(batch, progress[batch.batch_id]) for batch in page.items]
    return json_response({"items": items, "next": page.next_cursor})


@router.get("/{batch_id}", response_model=BatchResponse, responses=error_responses(404), summary="Get a batch")
async def get_batch(service: ServiceDep, principal: PrincipalDep, batch_id: BatchId) -> Response:
    """Get the progress and the cost of a batch."""
    return json_response(await _describe(service, await _load_batch(service, principal, batch_id)))


@router.post(
    "/{batch_id}/pause", response_model=BatchResponse, responses=error_responses(404, 409), summary="Pause a batch"
)
async def pause_batch(service: ServiceDep, principal: PrincipalDep, batch_id: BatchId) -> Response:
    """Start no further task of a batch. Active tasks end."""
    return await _set_paused(service, principal, batch_id, paused=True)


@router.post(
    "/{batch_id}/resume", response_model=BatchResponse, responses=error_responses(404, 409), summary="Resume a batch"
)
async def resume_batch(service: ServiceDep, principal: PrincipalDep, batch_id: BatchId) -> Response:
    """Continue a paused batch."""
    return await _set_paused(service, principal, batch_id, paused=False)


@router.post(
    "/{batch_id}/retry", response_model=BatchResponse, responses=error_responses(404), summary="Retry failed tasks"
)
async def retry_batch(service: ServiceDep, principal: PrincipalDep, batch_id: BatchId) -> Response:
    """Run the failed and cancelled tasks of a batch again, each as a new run."""
    await _load_batch(service, principal, batch_id)
    await service.store.batches.retry_failed(batch_id)
    return await get_batch(service, principal, batch_id)


@router.post(
    "/{batch_id}/cancel", response_model=BatchResponse, responses=error_responses(404), summary="Cancel a batch"
)
async def cancel_batch(service: ServiceDep, principal: PrincipalDep, batch_id: BatchId) -> Response:
    """Cancel the tasks of a batch that have not ended."""
    await _load_batch(service, principal, batch_id)
    await service.store.batches.cancel(batch_id)
    return await get_batch(service, principal, batch_id)


@router.get(
    "/{batch_id}/results",
    response_class=Response,
    responses=error_responses(404) | describe_text(JSON_LINES, "JSON lines.", RESULT_EXAMPLE),
    summary="Get the results of a batch",
)
async def get_batch_results(service: ServiceDep, principal: PrincipalDep, batch_id: BatchId) -> Response:
    """Get one JSON line for each task that has ended, in the order of the tasks."""
    await _load_batch(service, principal, batch_id)

    async def write_lines() -> AsyncIterator[bytes]:
        async for result in service.store.batches.iterate_results(batch_id):
            yield dump_json(result) + b"\n"

    return StreamingResponse(write_lines(), media_type=JSON_LINES)


async def _set_paused(service: Service, principal: Principal, batch_id: str, *, paused: bool) -> Response:
    await _load_batch(service, principal, batch_id)
    if not await service.store.batches.set_paused(batch_id, paused=paused):
        raise conflict_error("The batch has ended.")
    return await get_batch(service, principal, batch_id)


async def _describe(service: Service, batch: Batch) -> dict[str, Any]:
    return batch_to_json(batch, await service.store.batches.get_progress(batch.batch_id))


async def _load_batch(service: Service, principal: Principal, batch_id: str) -> Batch:
    """Return a batch of the API key, or any batch for the scope `admin`.

    Raises:
        ApiError: 404, if the batch does not exist or belongs to another key.
    """
    batch = await service.store.batches.get(batch_id)
    if batch is None or (batch.owner != principal.key_id and not principal.has_scope("admin")):
        raise not_found_error(f"There is no batch {batch_id!r}.")
    return batch
