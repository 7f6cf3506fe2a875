"""The routes of executions, the records of tool calls: lists, filters and export."""

import csv
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from opposable.domain.json_forms import execution_to_json
from opposable.domain.records import Execution, ExecutionFilter
from opposable.domain.tools import FailureKind
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse
from opposable.web.api.serializers import dump_json
from opposable.web.api.text_responses import JSON_LINES
from opposable.web.errors import error_responses, forbidden_error, not_found_error, validation_error
from opposable.web.principal import Principal

router = ApiRouter(prefix="/api/executions", tags=["executions"], dependencies=[Depends(RequireScope("tools:read"))])
CSV_COLUMNS = (
    *("execution_id", "at", "tool_id", "name", "failure", "seconds", "attempts", "cached", "arguments", "result"),
    *("run_id", "call_id", "agent_id", "conversation_id", "trace_id", "handle", "repairs"),
)
EXPORT_CONTENT = {media_type: {"schema": {"type": "string"}} for media_type in (JSON_LINES, "text/csv")}
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""Characters that start a formula in a spreadsheet."""


class ExecutionResponse(BaseModel):
    """The record of a tool call.

    Secrets in `arguments` were redacted before it was stored.
    """

    execution_id: str
    at: datetime
    tool_id: str
    name: str
    arguments: dict[str, Any]
    result: str = Field(description="The result that was sent to the model.")
    failure: FailureKind | None
    seconds: float
    attempts: int
    cached: bool
    repairs: list[str]
    handle: str
    run_id: str
    call_id: str
    trace_id: str
    agent_id: str
    conversation_id: str


async def parse_execution_filter(
    tool_id: Annotated[str, Query(max_length=200)] = "",
    agent_id: Annotated[str, Query(max_length=200)] = "",
    run_id: Annotated[str, Query(max_length=200)] = "",
    conversation_id: Annotated[str, Query(max_length=200)] = "",
    failure: Annotated[FailureKind | Literal["any"] | None, Query(description="A kind of failure, or any.")] = None,
    since: Annotated[datetime | None, Query(description="The start, included; UTC without a time zone.")] = None,
    until: Annotated[datetime | None, Query(description="The end, excluded; UTC without a time zone.")] = None,
) -> ExecutionFilter:
    """Return the filter of a request. An execution must match all its fields.

    Raises:
        ApiError: 422, if a time is outside of the years 1 to 9999 in UTC.
    """
    times = _to_utc("since", since), _to_utc("until", until)
    return ExecutionFilter(tool_id, agent_id, run_id, conversation_id, failure, *times)


ExecutionFilterDep = Annotated[ExecutionFilter, Depends(parse_execution_filter)]


@router.get("", responses=error_responses(404), summary="List executions")
async def list_executions(
    service: ServiceDep,
    principal: PrincipalDep,
    execution_filter: ExecutionFilterDep,
    after: AfterQuery = "",
    limit: LimitQuery = 100,
) -> PageResponse[ExecutionResponse]:
    """List the matching executions, newest first.

    Without the scope `admin`, the filter must name a run or a conversation of the API key.
    """
    execution_filter = await _limit_to_owner(service, principal, execution_filter)
    page = await service.store.executions.list(execution_filter, after=after, limit=limit)
    return PageResponse(items=[_to_response(execution) for execution in page.items], next=page.next_cursor)


@router.get(
    "/export",
    responses=error_responses(404) | {200: {"description": "One execution a line.", "content": EXPORT_CONTENT}},
    response_class=StreamingResponse,
    summary="Export executions",
)
async def export_executions(
    service: ServiceDep,
    principal: PrincipalDep,
    execution_filter: ExecutionFilterDep,
    format: Annotated[Literal["ndjson", "csv"], Query()] = "ndjson",
) -> StreamingResponse:
    """Stream all matching executions as JSON lines or CSV, newest first."""
    execution_filter = await _limit_to_owner(service, principal, execution_filter)
    await service.store.executions.list(execution_filter, limit=1)  # an unavailable store is reported before the stream
    lines = _stream_csv(service, execution_filter) if format == "csv" else _stream_ndjson(service, execution_filter)
    headers = {"content-disposition": f'attachment; filename="executions.{format}"'}
    return StreamingResponse(lines, headers=headers, media_type="text/csv" if format == "csv" else JSON_LINES)


@router.get("/{execution_id}", responses=error_responses(404), summary="Get an execution")
async def get_execution(
    service: ServiceDep, principal: PrincipalDep, execution_id: Annotated[str, Path(max_length=200)]
) -> ExecutionResponse:
    """Get an execution of a run or conversation of the API key."""
    execution = await service.store.executions.get(execution_id)
    if execution is None or not await _can_see(service, principal, execution.run_id, execution.conversation_id):
        raise not_found_error(f"There is no execution {execution_id!r}.")
    return _to_response(execution)


async def _limit_to_owner(service: Service, principal: Principal, execution_filter: ExecutionFilter) -> ExecutionFilter:
    """Return the filter, limited to the executions that the API key may see.

    Raises:
        ApiError: 403 or 404, if it names no run and no conversation of the key.
    """
    if principal.has_scope("admin"):
        return execution_filter
    run_id, conversation_id = execution_filter.run_id, execution_filter.conversation_id
    if not run_id and not conversation_id:
        raise forbidden_error("Without the scope 'admin', the filter needs a run_id or a conversation_id.")
    if not await _can_see(service, principal, run_id, conversation_id):
        raise not_found_error("There is no run or conversation with this id.")
    if conversation_id:
        conversation_id = await service.find_stored_conversation_id(conversation_id, principal.key_id)
    return replace(execution_filter, conversation_id=conversation_id, owner=principal.key_id)


async def _can_see(service: Service, principal: Principal, run_id: str, conversation_id: str) -> bool:
    if principal.has_scope("admin"):
        return True
    if run_id:
        run = await service.store.runs.get(run_id)
        return run is not None and run.owner == principal.key_id
    return bool(conversation_id) and await service.get_conversation(conversation_id, principal.key_id) is not None


async def _stream_ndjson(service: Service, execution_filter: ExecutionFilter) -> AsyncIterator[bytes]:
    lines: list[bytes] = []
    async for execution in service.store.executions.export(execution_filter):
        lines.append(dump_json(execution_to_json(execution)) + b"\n")
        if len(lines) == 200:
            yield b"".join(lines)
            lines.clear()
    yield b"".join(lines)


async def _stream_csv(service: Service, execution_filter: ExecutionFilter) -> AsyncIterator[bytes]:
    page = io.StringIO()
    writer = csv.writer(page)
    writer.writerow(CSV_COLUMNS)
    async for execution in service.store.executions.export(execution_filter):
        form = execution_to_json(execution)
        writer.writerow([_format_cell(form[name]) for name in CSV_COLUMNS])
        if page.tell() > 60_000:
            yield page.getvalue().encode("utf-8", "replace")
            page.seek(0)
            page.truncate()
    yield page.getvalue().encode("utf-8", "replace")


def _format_cell(value: Any) -> str:
    """Return a value as text that a spreadsheet does not evaluate."""
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat()
        case str():
            text = value
        case dict() | list():
            text = dump_json(value).decode()
        case _:
            return str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def _to_response(execution: Execution) -> ExecutionResponse:
    return ExecutionResponse(**execution_to_json(execution))


def _to_utc(name: str, time: datetime | None) -> datetime | None:
    if time is None or time.tzinfo is None:
        return time and time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise validation_error([(f"query.{name}", "must be a time in the years 1 to 9999 in UTC")]) from error
