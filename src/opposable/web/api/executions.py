"""The routes of executions: the calls that were made, filtered, in parts, or all in one stream."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from opposable.domain.json_forms import execution_to_json
from opposable.domain.records import Execution, ExecutionFilter
from opposable.domain.tools import FailureKind
from opposable.service.service import Service
from opposable.web.api.dependencies import PrincipalDep, RequireScope, ServiceDep
from opposable.web.api.pagination import AfterQuery, LimitQuery, PageResponse
from opposable.web.errors import error_responses, forbidden_error, not_found_error
from opposable.web.principal import Principal

router = APIRouter(prefix="/api/executions", tags=["executions"], dependencies=[Depends(RequireScope("tools:read"))])
CSV_COLUMNS = (
    *("execution_id", "at", "tool_id", "name", "failure", "seconds", "attempts", "cached", "arguments", "result"),
    *("run_id", "call_id", "agent_id", "conversation_id", "trace_id", "handle", "repairs"),
)
NDJSON_MEDIA_TYPE = "application/x-ndjson"
EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One execution a line.",
        "content": {
            NDJSON_MEDIA_TYPE: {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
        },
    }
}
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class ExecutionResponse(BaseModel):
    """A call as it was made. Secrets in `arguments` were redacted before they were kept."""

    execution_id: str
    at: datetime
    tool_id: str
    name: str
    arguments: dict[str, Any]
    result: str = Field(description="What the model was told.")
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
    failure: Annotated[FailureKind | Literal["any"] | None, Query(description="A kind, or any.")] = None,
    since: Annotated[datetime | None, Query(description="The first moment meant; UTC where no zone is given.")] = None,
    until: Annotated[datetime | None, Query(description="The first moment not meant any more.")] = None,
) -> ExecutionFilter:
    """Which executions are meant: all that is given must fit."""
    return ExecutionFilter(tool_id, agent_id, run_id, conversation_id, failure, _to_utc(since), _to_utc(until))


ExecutionFilterDep = Annotated[ExecutionFilter, Depends(parse_execution_filter)]


@router.get("", responses=error_responses(404), summary="Calls that were made, newest first")
async def list_executions(
    service: ServiceDep,
    principal: PrincipalDep,
    execution_filter: ExecutionFilterDep,
    after: AfterQuery = "",
    limit: LimitQuery = 100,
) -> PageResponse[ExecutionResponse]:
    """The calls that fit. A key without the scope `admin` names a run or a conversation of its own."""
    await _check_ownership(service, principal, execution_filter)
    page = await service.store.executions.list(execution_filter, after=after, limit=limit)
    return PageResponse(items=[_to_response(one) for one in page.items], next=page.next_cursor)


@router.get(
    "/export",
    responses=error_responses(404) | EXPORT_RESPONSES,
    response_class=StreamingResponse,
    summary="All calls that fit",
)
async def export_executions(
    service: ServiceDep,
    principal: PrincipalDep,
    execution_filter: ExecutionFilterDep,
    format: Annotated[Literal["ndjson", "csv"], Query()] = "ndjson",
) -> StreamingResponse:
    """Every call that fits, newest first, as lines of JSON or as CSV, sent as they are read."""
    await _check_ownership(service, principal, execution_filter)
    await service.store.executions.list(
        execution_filter, limit=1
    )  # a store that is away is told before the stream begins
    lines = _stream_csv(service, execution_filter) if format == "csv" else _stream_ndjson(service, execution_filter)
    named = {"content-disposition": f'attachment; filename="executions.{format}"'}
    return StreamingResponse(lines, headers=named, media_type="text/csv" if format == "csv" else NDJSON_MEDIA_TYPE)


@router.get("/{execution_id}", responses=error_responses(404), summary="One call")
async def get_execution(
    service: ServiceDep, principal: PrincipalDep, execution_id: Annotated[str, Path(max_length=200)]
) -> ExecutionResponse:
    """The call of that id, if it is of a run of the key's own."""
    one = await service.store.executions.get(execution_id)
    if one is None or not await _can_see(service, principal, one.run_id, one.conversation_id):
        raise not_found_error(f"There is no execution {execution_id!r}.")
    return _to_response(one)


async def _check_ownership(service: Service, principal: Principal, execution_filter: ExecutionFilter) -> None:
    """Refuse what would show another key's calls. Raises: `ApiError` 403 or 404."""
    if principal.has_scope("admin"):
        return
    if not execution_filter.run_id and not execution_filter.conversation_id:
        raise forbidden_error("Without the scope 'admin', name a run_id or a conversation_id of your own.")
    if not await _can_see(service, principal, execution_filter.run_id, execution_filter.conversation_id):
        raise not_found_error("There is no such run or conversation.")


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
        lines.append(orjson.dumps(execution_to_json(execution), option=orjson.OPT_APPEND_NEWLINE))
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
    """A value as text that no spreadsheet runs."""
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat()
        case str():
            text = value
        case dict() | list():
            text = orjson.dumps(value, default=str).decode()
        case _:
            return str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def _to_response(execution: Execution) -> ExecutionResponse:
    return ExecutionResponse(**execution_to_json(execution))


def _to_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
